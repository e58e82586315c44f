/**
 * The PaymentResponse of the interface, in the order of its fields: what merchants see of a payment.
 * Schemas with an `id` stand under it in the API document; tests alone check responses by them.
 */
import { z } from 'zod';
import {
  amount,
  type FailureCode,
  type FailureData,
  failureData,
  freeText,
  maskedCard,
  operation,
  paymentDetails,
  paymentId,
} from './fields.ts';
import { PAYMENT_STATUSES } from './transitions.ts';

const word = z.string().max(64);
const time = z.string().meta({ format: 'date-time' });
/** Minor units, also none. */
const sum = z.int().min(0).max(Number.MAX_SAFE_INTEGER).brand<'Minor'>();

const { failureCode, advice, networkDeclineCode, networkAdviceCode } = failureData.shape;
/** Earlier failures are stored for auditors alone. */
const { source, ...details } = paymentDetails.omit({
  merchantReference: true,
  previousFailures: true,
}).shape;

/** Of a declined attempt (gaps §12, §23); the last two codes are the card network's. */
export const Failure = z
  .object({
    failureCode,
    providerFailureCode: word.optional().describe("The provider's own code, as it came."),
    advice: advice.unwrap().describe('What to do about it: docs/errors.md has a row for each.'),
    networkDeclineCode: networkDeclineCode.describe("The card network's code, as it came."),
    networkAdviceCode: networkAdviceCode.describe(
      "The card network's code of what to do, as it came.",
    ),
  })
  .meta({ id: 'Failure' });
export type Failure = FailureData & { advice: z.infer<typeof Failure>['advice'] };

/** A finished attempt; an unfinished one is not listed (gaps §5). */
const Transaction = z
  .object({
    id: z.string().regex(/^(AUTH|SALE|CAPT|VOID|REFN)_[0-9A-Z]{26}$/),
    type: z.enum(['AUTH', 'SALE', 'CAPTURE', 'VOID', 'REFUND']),
    amount,
    result: z.enum(['SUCCEEDED', 'FAILED']),
    failure: Failure.optional().describe('There when the result is FAILED.'),
    createdAt: time,
  })
  .meta({ id: 'Transaction' });
export type Transaction = z.infer<typeof Transaction>;

/** A cardholder's dispute (gaps §15). */
const Dispute = z
  .object({
    id: word,
    amount,
    reason: word.describe("The provider's word."),
    status: z.enum(['OPEN', 'WON', 'LOST']),
    createdAt: time,
  })
  .meta({ id: 'Dispute' });
export type Dispute = z.infer<typeof Dispute>;

const NextAction = z
  .object({ type: z.enum(['REDIRECT']), url: z.url().optional(), expiresAt: time })
  .meta({ id: 'NextAction' });

/** The response to create, get, capture, void and refund (interface, "Payment response"). */
export const paymentResponse = z.object({
  paymentId,
  merchantReference: freeText,
  amount: amount.describe('The created amount; it never changes.'),
  authorizedAmount: sum.describe('The first authorized sum; it never changes.'),
  capturedAmount: sum.describe('What was captured; of a part, the rest was released.'),
  refundedAmount: sum.describe('What all refunds gave back until now.'),
  refundableAmount: sum.describe('What a refund may give back now.'),
  currency: operation.currency,
  status: z.enum(PAYMENT_STATUSES),
  paymentMethod: z.object({
    type: z.enum(['CARD']),
    card: maskedCard,
    encryptedCard: maskedCard.omit({ last4: true }),
  }),
  captureNow: z.boolean(),
  ...details,
  createdAt: time,
  updatedAt: time,
  transactions: z.array(Transaction).describe('Every finished attempt, in order.'),
  disputes: z
    .array(Dispute)
    .optional()
    .describe('What the cardholder disputed. While one is OPEN nothing is refunded.'),
  authorizationExpiresAt: time
    .optional()
    .describe(
      'When the authorization ends, while the payment is AUTHORIZED, if the provider tells it.',
    ),
  /** While the provider waits for the shopper (gaps §21); `url` is in the response to a create alone. */
  nextAction: NextAction.optional(),
  source,
});
export type PaymentResponse = z.infer<typeof paymentResponse>;

/** The body of a 402 from create (interface, "Payment failure response"). */
export type PaymentFailureResponse = Pick<
  PaymentResponse,
  'paymentId' | 'merchantReference' | 'metadata' | 'amount' | 'currency' | 'status'
> & { failure: Failure };

const PREFIXES: Record<Transaction['type'], string> = {
  AUTH: 'AUTH_',
  SALE: 'SALE_',
  CAPTURE: 'CAPT_',
  VOID: 'VOID_',
  REFUND: 'REFN_',
};

/** The public id of an attempt: the prefix of its type and the 26 characters of its operation id. */
export const transactionId = (type: Transaction['type'], operationId: string): string =>
  PREFIXES[type] + operationId.slice(-26);

/** Any other code is worth a later attempt. */
const ADVICE: Partial<Record<FailureCode, Failure['advice']>> = {
  INVALID_CARD_NUMBER: 'CORRECT_DATA',
  INCORRECT_CVV: 'CORRECT_DATA',
  EXPIRED_CARD: 'USE_ANOTHER_CARD',
  CARD_NOT_SUPPORTED: 'USE_ANOTHER_CARD',
  TRANSACTION_NOT_PERMITTED: 'USE_ANOTHER_CARD',
  LOST_CARD: 'DO_NOT_RETRY',
  STOLEN_CARD: 'DO_NOT_RETRY',
  PICKUP_CARD: 'DO_NOT_RETRY',
  SUSPECTED_FRAUD: 'DO_NOT_RETRY',
  AUTHENTICATION_REQUIRED: 'AUTHENTICATE',
};

/** The provider's own advice, else that of the failure code: also for events stored without one. */
export const adviceOf = ({ failureCode, advice }: FailureData): Failure['advice'] =>
  advice ?? ADVICE[failureCode] ?? 'RETRY_LATER';

const FAILURE_FIELDS = Object.keys(failureData.shape) as (keyof FailureData)[];

/** Copies the given fields of a failure and no others. */
export const givenFailure = (failure: FailureData): FailureData =>
  Object.fromEntries(
    FAILURE_FIELDS.flatMap((field) => (failure[field] ? [[field, failure[field]]] : [])),
  ) as FailureData;

export const failureOf = (data: FailureData): Failure => {
  const advice = adviceOf(data);
  return { ...givenFailure({ ...data, advice }), advice };
};

const FIELDS = Object.keys(paymentResponse.shape) as (keyof PaymentResponse)[];
/** Parsed, since an object made field by field is four times slower to write as text. */
const EMPTY = JSON.parse(`{${FIELDS.map((field) => `"${field}":null`).join()}}`);

/** The fields that merchants see of a payment, in the order of the schema. */
export const responseOf = (payment: PaymentResponse): PaymentResponse => {
  const response = { ...EMPTY };
  for (const field of FIELDS) response[field] = payment[field];
  return response;
};

/** The JSON text of the response; no other code serializes it. */
export const bodyOf = (payment: PaymentResponse): string => JSON.stringify(responseOf(payment));

/** The body of the 202, with the address that the shopper has to be sent to (gaps §21). */
export const actionBodyOf = (payment: PaymentResponse, url: string): string => {
  if (payment.nextAction === undefined) throw new Error('the payment waits for no shopper');
  const { type, expiresAt } = payment.nextAction;
  return bodyOf({ ...payment, nextAction: { type, url, expiresAt } });
};

/** The body of the 402 for a payment whose create failed; undefined for any other payment. */
export const failureBodyOf = (payment: PaymentResponse): PaymentFailureResponse | undefined => {
  const { paymentId, merchantReference, metadata, amount, currency, status } = payment;
  const failure = payment.transactions[0]?.failure;
  if (status !== 'FAILED' || failure === undefined) return undefined;
  return { paymentId, merchantReference, metadata, amount, currency, status, failure };
};
