/**
 * A provider that is called as the service calls it: what it opens is kept as in the payment's
 * stream, and named in every later question and follow-up.
 */
import type {
  KeepOpened,
  OperationQuestion,
  Provider,
  ProviderOperation,
} from '../../providers/port.ts';

/** What providers have opened and approved, by operation id. */
export type References = Map<string, string>;

type About = ProviderOperation | OperationQuestion;

/** Stands before the id of an operation that is recorded as fenced. */
const FENCED = 'fenced';

export type LoggedProvider = Omit<Provider, 'execute' | 'lookUp' | 'fence'> & {
  execute(operation: ProviderOperation, opened?: KeepOpened): ReturnType<Provider['execute']>;
  lookUp(about: About): ReturnType<Provider['lookUp']>;
  fence(about: About): ReturnType<Provider['fence']>;
};

export const withLog = (provider: Provider, references: References = new Map()): LoggedProvider => {
  const authorizationOf = (about: About) => {
    const authorizationId = 'authorizationId' in about ? about.authorizationId : undefined;
    if (authorizationId === undefined) return {};
    return { authorizationId, authorizationReference: references.get(authorizationId) };
  };
  const questionOf = (about: About): OperationQuestion => {
    const { operationId, paymentId, merchantId, kind, amount, currency } = about;
    return {
      operationId,
      paymentId,
      merchantId,
      kind,
      amount,
      currency,
      requestedAt: new Date().toISOString(),
      reference: references.get(operationId),
      ...authorizationOf(about),
      ...('requestedAt' in about && about),
    };
  };
  return {
    ...provider,
    execute: async (operation, opened = async () => undefined) => {
      const { operationId } = operation;
      const sent = { ...operation, ...authorizationOf(operation) } as ProviderOperation;
      const outcome = await provider.execute(sent, async (reference) => {
        if (references.has(`${FENCED} ${operationId}`)) throw new Error('it has its outcome');
        await opened(reference);
        references.set(operationId, reference);
      });
      const { providerReference = undefined } = outcome.outcome === 'APPROVED' ? outcome : {};
      if (providerReference !== undefined) references.set(operationId, providerReference);
      return outcome;
    },
    lookUp: (about) => provider.lookUp(questionOf(about)),
    fence: async (about) => {
      const question = questionOf(about);
      const found = await provider.fence(question);
      const { operationId } = about;
      // As the log does: not over a reference that appeared after the question.
      const isJudgedOnNow = references.get(operationId) === question.reference;
      if (found.outcome === 'FENCED' && isJudgedOnNow)
        references.set(`${FENCED} ${operationId}`, FENCED);
      return found;
    },
  };
};
