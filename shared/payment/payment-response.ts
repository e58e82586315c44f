/**
 * The PaymentResponse of the interface, the read model around it, and how its amounts are computed.
 * Schemas with an `id` stand under it in the API document; tests alone check responses by them.
 */
import { z } from 'zod';
import {
  amountMinor,
  type FailureCode,
  type FailureData,
  failureData,
  maskedCard,
  operation,
  optionalText,
  paymentDetails,
  paymentId,
} from './fields.ts';
import { type Confirmation, PAYMENT_STATUSES } from './transitions.ts';

const word = z.string().max(64);
const time = z.string().meta({ format: 'date-time' });
const sum = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

const { failureCode, advice, networkDeclineCode, networkAdviceCode } = failureData.shape;
const { goodsType, productItems, consumer, billing, shipping, metadata, source } =
  paymentDetails.shape;

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
    amount: amountMinor,
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
    amount: amountMinor,
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
  merchantReference: optionalText,
  amount: amountMinor.describe('The created amount; it never changes.'),
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
  descriptor: optionalText,
  goodsType,
  productItems,
  consumer,
  billing,
  shipping,
  metadata,
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

/** One payment in the read models: its response, and what the next event needs. */
export type PaymentReadModel = {
  merchantId: string;
  /** Of the last event in it, from 0. */
  revision: number;
  /**
   * Recovery asks the provider about these, oldest first: intents that have no outcome yet, with the
   * intent's time, and with `confirmation` operations that were resolved by hand and that the provider
   * has not confirmed, with the outcome's time.
   */
  unresolved: {
    operationId: string;
    amount: number;
    since: string;
    confirmation?: Confirmation;
    /** The provider waits for the shopper until then (gaps §21). */
    waitsUntil?: string;
  }[];
  response: PaymentResponse;
};

export type UnresolvedIntents = PaymentReadModel['unresolved'];

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

/** An intent that waits for the shopper is not unresolved (gaps §21). */
export const intentsWithoutOutcome = (unresolved: UnresolvedIntents): UnresolvedIntents =>
  unresolved.filter((o) => o.confirmation === undefined && o.waitsUntil === undefined);

type Amounts = Pick<PaymentResponse, 'capturedAmount' | 'refundedAmount' | 'disputes'>;

/** Captured − refunded − refunds in flight. Before a capture the unresolved intents are no refunds. */
export const leftOfCapture = (
  { capturedAmount, refundedAmount }: Amounts,
  unresolved: UnresolvedIntents,
): number => {
  const inFlight = capturedAmount === 0 ? [] : intentsWithoutOutcome(unresolved);
  return capturedAmount - refundedAmount - sumOf(inFlight);
};

/** The most that a refund may give back: disputes that were lost took their part. */
export const refundableAmount = (amounts: Amounts, unresolved: UnresolvedIntents): number => {
  const lost = (amounts.disputes ?? []).filter(({ status }) => status === 'LOST');
  return Math.max(0, leftOfCapture(amounts, unresolved) - sumOf(lost));
};

const sumOf = (all: readonly { amount: number }[]): number =>
  all.reduce((total, { amount }) => total + amount, 0);

/** The place of the operation's refund in the list; -1 where none has ended. */
export const refundAt = (transactions: readonly Transaction[], operationId: string): number =>
  transactions.findLastIndex(({ id }) => id === transactionId('REFUND', operationId));

// Measured: 1.8 MB for a payment of 2,001 events with its state.
const EVENT_BYTES = 1_000;
const READ_MODEL_BYTES = 4_000;
const TRANSACTION_BYTES = 400;
const ITEM_BYTES = 1_200;
const METADATA_BYTES = 600;

/** About how many bytes a read model takes in a cache (ADR-0112). */
export const bytesOfReadModel = ({ response, unresolved }: PaymentReadModel): number =>
  READ_MODEL_BYTES +
  (response.transactions.length + (response.disputes?.length ?? 0) + unresolved.length) *
    TRANSACTION_BYTES +
  (response.productItems?.length ?? 0) * ITEM_BYTES +
  Object.keys(response.metadata ?? {}).length * METADATA_BYTES;

/** About how many bytes a payment takes with all its events and its state. */
export const bytesOfPayment = (payment: {
  events: readonly unknown[];
  state: { readModel: PaymentReadModel };
}): number => payment.events.length * EVENT_BYTES + bytesOfReadModel(payment.state.readModel);
