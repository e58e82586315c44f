/** The secret under which tests that open read models by themselves make the checks of documents. */
export const READ_MODEL_SECRETS = ['the idempotency secret of the tests'] as const;
