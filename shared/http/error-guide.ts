/** The text of docs/errors.md and of the page `/docs/errors`. Text between backticks is code, on both. */
import type { ErrorCode } from './errors.ts';

export type ErrorEntry = {
  means: string;
  todo: string;
  stored: string;
};

const NOTHING = 'Nothing.';

export const ERROR_GUIDE: Readonly<Record<ErrorCode, ErrorEntry>> = {
  INVALID_REQUEST: {
    means:
      'The body is no JSON object, a field is missing or malformed, or a header or (on capture and refund) the paymentId is malformed. `details` has one entry per field. An amount has no decimal point: 2500 is 25 dollars. `captureNow is misspelled`: a name differs from a field only in case, `_` or `-`. The transport says it too: 408 the request came too slowly, 413 it is above 64 KiB, 417 its `Expect` is not known, 431 its headers are above 16 KiB.',
    todo: 'Correct what `details` name: the same request is rejected again.',
    stored: NOTHING,
  },
  INVALID_PAYMENT_ID: {
    means: 'On get and void: the paymentId is not 1 to 32 characters of `A-Z a-z 0-9 _ -`.',
    todo: 'Use the `paymentId` of a response as it came. An empty one is often a variable that was never set.',
    stored: NOTHING,
  },
  UNAUTHORIZED: {
    means:
      'The token is missing or not good. `details` say which: `the Authorization header is required`, `the token has expired`, `the token format is invalid` (also for a wrong signature, issuer or audience).',
    todo: 'Get a new token and send `Authorization: Bearer <token>` once. On a local service: `npx payments token`.',
    stored: NOTHING,
  },
  FORBIDDEN: {
    means:
      'The token is good and does not allow this: it lacks the scope that `details` name, or a `sub` where two persons have to agree, or it is for all merchants where the route needs one.',
    todo: 'Ask for a token with that scope: `payments:read` for GET, `payments:write` for POST, `webhooks:write` to register and change webhook endpoints, `audit:read` for auditors, `ops:admin` for operators, and `ops:resolve` to resolve an operation by hand.',
    stored: NOTHING,
  },
  NOT_FOUND: {
    means: 'The service has nothing at this address.',
    todo: 'Compare the path with `/docs`. All merchant paths begin with `/api/v1/payments`.',
    stored: NOTHING,
  },
  PAYMENT_NOT_FOUND: {
    means:
      'The paymentId is well formed, and the merchant of the token has no such payment; another merchant may have it.',
    todo: 'Check the id, and that the token is of the merchant who made the payment.',
    stored: NOTHING,
  },
  WEBHOOK_ENDPOINT_NOT_FOUND: {
    means:
      'The merchant of the token has no such webhook endpoint, or deleted it; another merchant may have it.',
    todo: 'Use an `id` of `GET /api/v1/webhook-endpoints`, with a token of the merchant who registered it.',
    stored: NOTHING,
  },
  METHOD_NOT_ALLOWED: {
    means: 'The address is right, its method is not.',
    todo: 'Use one of the methods in the `Allow` header.',
    stored: NOTHING,
  },
  IDEMPOTENCY_IN_PROGRESS: {
    means: 'An earlier request with this `Idempotency-Key` still runs.',
    todo: 'Wait for `Retry-After` seconds and send the same request with the same key.',
    stored: 'Nothing by this request. The earlier one goes on to its end.',
  },
  BUSINESS_RULE_VIOLATION: {
    means:
      'The create is well formed and a rule of the merchant forbids it: the amount is over the maximum, the currency is not USD, the card brand is not accepted, or the merchantReference has to be unique and is taken. Or the merchant has 10 webhook endpoints already. `details` say which.',
    todo: 'Change the payment; the same one is rejected again. Delete a webhook endpoint that is not used.',
    stored: 'Nothing. The card was not charged.',
  },
  CAPTURE_NOT_ALLOWED: {
    means:
      'The payment is not AUTHORIZED (a second capture among others), the amount is over the authorized one, or the provider declined the capture: then `details` have its `failureCode`.',
    todo: 'Read the payment for its `status` and `authorizedAmount`. After a decline of the provider, a later try is a new attempt.',
    stored: 'Nothing, or, after a decline of the provider, a FAILED transaction. The status stays.',
  },
  VOID_NOT_ALLOWED: {
    means:
      'The payment is not AUTHORIZED, or the provider declined the void: then `details` have its `failureCode`.',
    todo: 'Read the payment for its `status`. Refund a captured payment.',
    stored: 'Nothing, or, after a decline of the provider, a FAILED transaction. The status stays.',
  },
  REFUND_NOT_ALLOWED: {
    means:
      'The payment is not captured, is refunded already, the amount is over what is left, or the provider declined the refund: then `details` have its `failureCode`.',
    todo: 'Read the payment for its `refundableAmount`. A refund without an amount gives back all that is left.',
    stored: 'Nothing, or, after a decline of the provider, a FAILED transaction. The status stays.',
  },
  WEBHOOK_NOT_ALLOWED: {
    means:
      'The request is well formed and the webhook endpoint does not allow it: it is DISABLED, or the event is not among its attempts. `details` say which.',
    todo: 'Enable the endpoint first, or send again by `since`.',
    stored: NOTHING,
  },
  IDEMPOTENCY_KEY_REUSED: {
    means: 'This `Idempotency-Key` came before with another request. Keys never expire.',
    todo: 'Use a new key for each new operation, and the old key for repeats of the same request alone.',
    stored: 'Nothing by this request. What the first one did stands.',
  },
  RATE_LIMITED: {
    means:
      'Too many requests: of the merchant, or without a valid token from this address. Or the webhook endpoint had four tests within the last minute; `details` say so.',
    todo: 'Wait for `Retry-After` seconds, then send less at once.',
    stored: NOTHING,
  },
  INTERNAL_ERROR: {
    means: 'A fault of the service.',
    todo: 'Send the same request again with the same `Idempotency-Key`: it finds out what the first one did and moves no money twice. Tell the operator the `Request-Id` of the response.',
    stored:
      'Not known from this response: the payment may have gone on. A repeat under the same key, or a GET, tells.',
  },
  PROVIDER_UNAVAILABLE: {
    means:
      'The card provider could not be reached, or its response was lost. `details` name the paymentId and say which: `nothing was charged` is certain; an outcome that is `not known yet` may have moved money, as may an earlier attempt that the provider cannot report now. Or the payment was made at another provider than the one in use now: `details` say so, and no paymentId.',
    todo: 'Where nothing was charged: try again. Where the outcome is not known: read the payment at `Location` until it has one, or repeat with the same `Idempotency-Key`; never send a new payment in its place. Where `details` say that an operator has to resolve it, the provider carried it out and the log has it as never sent: wait. Where it was made at another provider, ask the operator: it cannot be changed until that one is in use again.',
    stored:
      'The intent. Its outcome is looked up at the provider and recorded; until then a new payment is PENDING, any other keeps its status. Nothing where the payment was made at another provider.',
  },
  SERVICE_UNAVAILABLE: {
    means:
      'The service cannot take the request now: overload, too many of your own requests at once or responses that you have not read, a shutdown, one of its stores is out of reach, or the stored events of this payment are not whole (`details` say so).',
    todo: 'Wait for `Retry-After` seconds and send the same request with the same `Idempotency-Key`.',
    stored: 'Nothing, unless `details` say that this is not known.',
  },
};

export const anchorOf = (code: string): string => code.toLowerCase();

export const ERRORS_PATH = '/docs/errors';
/** The entry of a create that the provider declined: that body has no code (402). */
export const PAYMENT_FAILED = 'PAYMENT_FAILED';
export const FAILED_ENTRY: ErrorEntry = {
  means:
    'The provider declined the create. The body is no error body but the failed payment: `failure.failureCode` says why in the words below, `failure.providerFailureCode` in those of the provider.',
  todo: 'Ask for another card or another way to pay. CARD_DECLINED, ISSUER_UNAVAILABLE and PROCESSING_ERROR may pass later; LOST_CARD, STOLEN_CARD and PICKUP_CARD never do. A new try is a new create under a new `Idempotency-Key`.',
  stored: 'The payment, FAILED for good, with one FAILED transaction. Nothing was charged.',
};

/** The `Link` header of an error (RFC 8288). */
export const helpLink = (code: string): string => `<${ERRORS_PATH}#${anchorOf(code)}>; rel="help"`;
