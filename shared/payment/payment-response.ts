/**
 * The PaymentResponse of the interface and what the read models keep of a payment, with the parts that
 * the fold over its events is made of (response.ts, later-response.ts).
 */
import type { EventData, FailureCode, MaskedCard, PaymentDetails } from './payment-events.ts';
import type { PaymentStatus } from './payment-status.ts';
import type { Confirmation } from './transitions.ts';

/** Why an attempt failed; `providerFailureCode` is the provider's own code. */
export type Failure = { failureCode: FailureCode; providerFailureCode?: string };

/** The kinds of attempts that a response lists. */
export type TransactionType = 'AUTH' | 'SALE' | 'CAPTURE' | 'VOID' | 'REFUND';

/** A finished attempt; an unfinished one is not listed (gaps §5). */
export type Transaction = {
  id: string;
  type: TransactionType;
  amount: number;
  result: 'SUCCEEDED' | 'FAILED';
  failure?: Failure;
  createdAt: string;
};

/** What a cardholder disputes (gaps §15); `reason` is the provider's word. */
export type Dispute = {
  id: string;
  amount: number;
  reason: string;
  status: 'OPEN' | 'WON' | 'LOST';
  createdAt: string;
};

/** The response to create, get, capture, void and refund (interface, "Payment response"). */
export type PaymentResponse = {
  paymentId: string;
  merchantReference?: string;
  amount: number;
  authorizedAmount: number;
  capturedAmount: number;
  refundedAmount: number;
  refundableAmount: number;
  currency: string;
  status: PaymentStatus;
  paymentMethod: {
    type: 'CARD';
    card: MaskedCard;
    encryptedCard: Omit<MaskedCard, 'last4'>;
  };
  captureNow: boolean;
  descriptor?: string;
  goodsType?: string;
  productItems?: PaymentDetails['productItems'];
  consumer?: PaymentDetails['consumer'];
  billing?: PaymentDetails['billing'];
  shipping?: PaymentDetails['shipping'];
  createdAt: string;
  updatedAt: string;
  transactions: Transaction[];
  disputes?: Dispute[];
  source?: PaymentDetails['source'];
};

/** The body of a 402 from create (interface, "Payment failure response"). */
export type PaymentFailureResponse = Pick<
  PaymentResponse,
  'paymentId' | 'merchantReference' | 'amount' | 'currency' | 'status'
> & { failure: Failure };

/** One payment in the read models: its response, and what the next event needs. */
export type PaymentReadModel = {
  merchantId: string;
  /** The revision, from 0, of the last event in it. */
  revision: number;
  /**
   * What recovery has to ask the provider about, oldest first: intents that have no outcome yet,
   * with the intent's time, and with `confirmation` operations that were resolved by hand and that
   * the provider has not confirmed, with the outcome's time.
   */
  unresolved: {
    operationId: string;
    amount: number;
    since: string;
    confirmation?: Confirmation;
  }[];
  response: PaymentResponse;
};

/** What recovery has to ask the provider about. */
export type UnresolvedIntents = PaymentReadModel['unresolved'];

const PREFIXES: Record<TransactionType, string> = {
  AUTH: 'AUTH_',
  SALE: 'SALE_',
  CAPTURE: 'CAPT_',
  VOID: 'VOID_',
  REFUND: 'REFN_',
};

/** The public id of an attempt: the prefix of its type and the 26 characters of its operation id. */
export const transactionId = (type: TransactionType, operationId: string): string =>
  PREFIXES[type] + operationId.slice(-26);

/** Whether it is the public id of an attempt of this operation. */
export const isIdOf = (transactionId: string, operationId: string): boolean =>
  transactionId.endsWith(operationId.slice(-26));

/** Why an attempt failed, as a response shows it. */
export const failureOf = (
  data: Pick<EventData<'PaymentFailed'>, 'failureCode' | 'providerFailureCode'>,
): Failure => ({
  failureCode: data.failureCode,
  ...(data.providerFailureCode === undefined
    ? {}
    : { providerFailureCode: data.providerFailureCode }),
});

/** An attempt as a response lists it: failed where `failure` is given. */
export const attempt = (
  type: TransactionType,
  data: { operationId: string; amount: number },
  createdAt: string,
  failure?: Failure,
): Transaction => ({
  id: transactionId(type, data.operationId),
  type,
  amount: data.amount,
  result: failure === undefined ? 'SUCCEEDED' : 'FAILED',
  ...(failure === undefined ? {} : { failure }),
  createdAt,
});

/** The intents that have no outcome, of all that recovery asks about. */
export const intentsWithoutOutcome = (unresolved: UnresolvedIntents): UnresolvedIntents =>
  unresolved.filter((o) => o.confirmation === undefined);

/** Only captured payments have unresolved refunds: before a capture nothing is refundable. */
export const leftToRefund = (response: PaymentResponse, unresolved: UnresolvedIntents): number => {
  const { capturedAmount, refundedAmount } = response;
  const reserved =
    capturedAmount === 0
      ? 0
      : intentsWithoutOutcome(unresolved).reduce((total, o) => total + o.amount, 0);
  return capturedAmount - refundedAmount - reserved;
};

/** What a dispute took is not there to be refunded. */
export const refundableAmount = (
  response: PaymentResponse,
  unresolved: UnresolvedIntents,
): number => {
  const lost = (response.disputes ?? []).filter(({ status }) => status === 'LOST');
  const taken = lost.reduce((total, { amount }) => total + amount, 0);
  return Math.max(0, leftToRefund(response, unresolved) - taken);
};
