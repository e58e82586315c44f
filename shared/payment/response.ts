/**
 * The payment as a response shows it: a fold of `project` over the stream gives the PaymentResponse
 * of the interface. The command side, the projector and the query side's fold all use this one
 * function, so the bodies of one revision are the same to the byte (gaps §9).
 */
import type {
  EventData,
  FailureCode,
  MaskedCard,
  PaymentDetails,
  PaymentEvent,
} from './payment-events.ts';
import type { PaymentStatus } from './payment-status.ts';
import {
  type Confirmation,
  checkLater,
  checkNote,
  checkOperation,
  confirmationAfter,
  type FollowingEvent,
  inStatusFor,
  isIntent,
  isLater,
  isNote,
  type LaterEvent,
  type NoteEvent,
  statusAfterRefund,
  TRANSITIONS,
} from './transitions.ts';

/** The version of the stored read models: raise it with any change of `project` or of a type below. */
export const READ_MODEL_VERSION = 3;

/** Why an attempt failed; `providerFailureCode` is the provider's own code. */
export type Failure = { failureCode: FailureCode; providerFailureCode?: string };

type TransactionType = 'AUTH' | 'SALE' | 'CAPTURE' | 'VOID' | 'REFUND';

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

/** An event with its revision, from 0, and its time: what a fold needs of a stored event. */
export type PlacedEvent = { revision: number; time: string; event: PaymentEvent };

const PREFIXES: Record<TransactionType, string> = {
  AUTH: 'AUTH_',
  SALE: 'SALE_',
  CAPTURE: 'CAPT_',
  VOID: 'VOID_',
  REFUND: 'REFN_',
};

/** The public id of an attempt: the prefix of its type and the 26 characters of its operation id. */
const transactionId = (type: TransactionType, operationId: string): string =>
  PREFIXES[type] + operationId.slice(-26);

const failureOf = (
  data: Pick<EventData<'PaymentFailed'>, 'failureCode' | 'providerFailureCode'>,
): Failure => ({
  failureCode: data.failureCode,
  ...(data.providerFailureCode === undefined
    ? {}
    : { providerFailureCode: data.providerFailureCode }),
});

const attempt = (
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

const created = (
  data: EventData<'PaymentCreated'>,
  { revision, time }: Omit<PlacedEvent, 'event'>,
): PaymentReadModel => {
  const {
    merchantReference,
    descriptor,
    goodsType,
    productItems,
    consumer,
    billing,
    shipping,
    source,
  } = data.details;
  const { last4: _, ...cardWithoutLast4 } = data.card;
  return {
    merchantId: data.merchantId,
    revision,
    unresolved: [{ operationId: data.operationId, amount: data.amount, since: time }],
    response: {
      paymentId: data.paymentId,
      ...(merchantReference === undefined ? {} : { merchantReference }),
      amount: data.amount,
      authorizedAmount: 0,
      capturedAmount: 0,
      refundedAmount: 0,
      refundableAmount: 0,
      currency: data.currency,
      status: TRANSITIONS.PaymentCreated.to,
      paymentMethod: { type: 'CARD', card: data.card, encryptedCard: cardWithoutLast4 },
      captureNow: data.captureNow,
      ...(descriptor === undefined ? {} : { descriptor }),
      ...(goodsType === undefined ? {} : { goodsType }),
      ...(productItems === undefined ? {} : { productItems }),
      ...(consumer === undefined ? {} : { consumer }),
      ...(billing === undefined ? {} : { billing }),
      ...(shipping === undefined ? {} : { shipping }),
      createdAt: time,
      updatedAt: time,
      transactions: [],
      ...(source === undefined ? {} : { source }),
    },
  };
};

/** The fields of the response that an event after the first one changes. */
const changes = (
  response: PaymentResponse,
  event: FollowingEvent,
  time: string,
): Partial<PaymentResponse> => {
  const adding = (type: TransactionType, failure?: Failure): { transactions: Transaction[] } => ({
    transactions: [...response.transactions, attempt(type, event.data, time, failure)],
  });
  switch (event.type) {
    case 'PaymentAuthorized':
      return {
        status: TRANSITIONS[event.type].to,
        authorizedAmount: event.data.amount,
        ...(response.captureNow ? {} : adding('AUTH')),
      };
    case 'PaymentCaptured':
      return {
        status: TRANSITIONS[event.type].to,
        capturedAmount: event.data.amount,
        ...adding(response.captureNow ? 'SALE' : 'CAPTURE'),
      };
    case 'PaymentVoided':
      return { status: TRANSITIONS[event.type].to, ...adding('VOID') };
    case 'PaymentRefunded': {
      const refundedAmount = response.refundedAmount + event.data.amount;
      const status = statusAfterRefund(refundedAmount, response.capturedAmount);
      return { status, refundedAmount, ...adding('REFUND') };
    }
    case 'PaymentFailed': {
      const failed = adding(response.captureNow ? 'SALE' : 'AUTH', failureOf(event.data));
      return { status: TRANSITIONS[event.type].to, ...failed };
    }
    case 'PaymentCaptureDeclined':
      return adding('CAPTURE', failureOf(event.data));
    case 'PaymentVoidDeclined':
      return adding('VOID', failureOf(event.data));
    case 'PaymentRefundDeclined':
      return adding('REFUND', failureOf(event.data));
    case 'PaymentCaptureRequested':
    case 'PaymentVoidRequested':
    case 'PaymentRefundRequested':
      return {};
  }
};

type UnresolvedIntents = PaymentReadModel['unresolved'];

const unresolvedAfter = (
  unresolved: UnresolvedIntents,
  event: FollowingEvent,
  since: string,
): UnresolvedIntents => {
  const { operationId, amount } = event.data;
  if (isIntent(event)) return [...unresolved, { operationId, amount, since }];
  const confirmation = confirmationAfter(event);
  const left = unresolved.filter((o) => o.operationId !== operationId || o.confirmation);
  // The second outcome of a sale finds what the first one has left.
  if (confirmation === undefined || left.some((o) => o.operationId === operationId)) return left;
  return [...left, { operationId, amount, since, confirmation }];
};

/** The read model after a note, which changes nothing that a merchant sees. Throws as checkNote does. */
const afterNote = (readModel: PaymentReadModel, note: NoteEvent): PaymentReadModel => {
  const { operationId } = note.data;
  const known = readModel.unresolved.find((o) => o.operationId === operationId);
  const confirmation = known?.confirmation;
  const isUnresolved = known !== undefined && confirmation === undefined;
  checkNote(note, { isUnresolved, confirmation });
  const revision = readModel.revision + 1;
  if (note.type === 'PaymentProviderOpened' || note.type === 'PaymentResolutionRequested')
    return { ...readModel, revision };
  const unresolved =
    note.type === 'PaymentOutcomeConfirmed'
      ? readModel.unresolved.filter((o) => o !== known)
      : readModel.unresolved.map((o) =>
          o === known ? { ...o, confirmation: 'CONTRADICTED' as const } : o,
        );
  return { ...readModel, revision, unresolved };
};

/** The read model after what the provider said later. Throws Error where it does not fit, as evolve does. */
const afterLater = (
  readModel: PaymentReadModel,
  event: LaterEvent,
  time: string,
): PaymentReadModel => {
  const { unresolved, response: before, merchantId, revision } = readModel;
  checkLater(event, before.status);
  const changed = laterChanges(readModel, event, time);
  const response = placed({ ...before, ...changed, updatedAt: time });
  response.refundableAmount = refundableAmount(response, unresolved);
  return { merchantId, revision: revision + 1, unresolved, response };
};

/** Disputes stand before the source, whenever they come. */
const placed = ({ source, ...response }: PaymentResponse): PaymentResponse => ({
  ...response,
  ...(source === undefined ? {} : { source }),
});

const misfit = (type: string): Error => new Error(`${type} does not fit its payment`);

const laterChanges = (
  readModel: PaymentReadModel,
  { type, data }: LaterEvent,
  time: string,
): Partial<PaymentResponse> => {
  const { response, unresolved } = readModel;
  const { transactions, disputes = [], capturedAmount } = response;
  switch (type) {
    case 'PaymentAuthorizationExpired':
      if (intentsWithoutOutcome(unresolved).length > 0) throw misfit(type);
      return { status: 'VOIDED', transactions: [...transactions, attempt('VOID', data, time)] };
    case 'PaymentRefundFailed':
      return {
        status: 'CAPTURED',
        refundedAmount: response.refundedAmount - data.amount,
        transactions: withFailedRefund(readModel, data),
      };
    case 'PaymentRefundObserved': {
      const id = transactionId('REFUND', data.operationId);
      const isTaken = hasNoOutcome(unresolved, data) || transactions.some((one) => one.id === id);
      if (isTaken || data.amount > leftToRefund(response, unresolved)) throw misfit(type);
      const refundedAmount = response.refundedAmount + data.amount;
      return {
        status: statusAfterRefund(refundedAmount, capturedAmount),
        refundedAmount,
        transactions: [...transactions, attempt('REFUND', data, time)],
      };
    }
    case 'PaymentDisputed': {
      const { disputeId: id, amount, reason } = data;
      if (disputes.some((one) => one.id === id)) throw misfit(type);
      const dispute: Dispute = { id, amount, reason, status: 'OPEN', createdAt: time };
      return { disputes: [...disputes, dispute] };
    }
    case 'PaymentDisputeClosed': {
      const { disputeId: id, status } = data;
      if (!disputes.some((one) => one.id === id && one.status === 'OPEN')) throw misfit(type);
      return { disputes: disputes.map((one) => (one.id === id ? { ...one, status } : one)) };
    }
  }
};

const hasNoOutcome = (unresolved: UnresolvedIntents, data: { operationId: string }): boolean =>
  intentsWithoutOutcome(unresolved).some((o) => o.operationId === data.operationId);

const withFailedRefund = (
  { unresolved, response: { transactions } }: PaymentReadModel,
  data: EventData<'PaymentRefundFailed'>,
): Transaction[] => {
  if (hasNoOutcome(unresolved, data)) throw misfit('PaymentRefundFailed');
  const id = transactionId('REFUND', data.operationId);
  const at = transactions.findLastIndex((one) => one.id === id);
  const refund = transactions[at];
  if (refund === undefined || refund.result !== 'SUCCEEDED' || refund.amount !== data.amount)
    throw misfit('PaymentRefundFailed');
  const { createdAt, result: _, ...kept } = refund;
  const failed = { ...kept, result: 'FAILED' as const, failure: failureOf(data), createdAt };
  return transactions.with(at, failed);
};

/** The intents that have no outcome, of all that recovery asks about. */
export const intentsWithoutOutcome = (unresolved: UnresolvedIntents): UnresolvedIntents =>
  unresolved.filter((o) => o.confirmation === undefined);

/** Throws Error where the event cannot follow, as the rules' fold does (transitions.ts). */
const checkFollows = ({ response, unresolved }: PaymentReadModel, event: FollowingEvent): void => {
  inStatusFor(event.type, response);
  const known = unresolved.find((o) => o.operationId === event.data.operationId);
  const isUnconfirmed = known?.confirmation !== undefined;
  const isUnresolved = known !== undefined && !isUnconfirmed;
  const { captureNow } = response;
  checkOperation(event, { isUnresolved, isUnconfirmed, captureNow });
};

/**
 * Applies one event. `readModel` is undefined for the first event of a stream, which must be a
 * PaymentCreated. Throws Error where the event cannot follow the read model: its revision is not the
 * next one, the stream does not begin with PaymentCreated, or the table of transitions excludes it.
 */
export const project = (
  readModel: PaymentReadModel | undefined,
  { revision, time, event }: PlacedEvent,
): PaymentReadModel => {
  const next = readModel === undefined ? 0 : readModel.revision + 1;
  if (revision !== next) throw new Error(`revision ${revision} where ${next} follows`);
  if (event.type === 'PaymentCreated') {
    if (readModel === undefined) return created(event.data, { revision, time });
    throw new Error('PaymentCreated is not the first event of its stream');
  }
  if (readModel === undefined) throw new Error('the stream has no PaymentCreated');
  if (isNote(event)) return afterNote(readModel, event);
  if (isLater(event)) return afterLater(readModel, event, time);
  checkFollows(readModel, event);
  const unresolved = unresolvedAfter(readModel.unresolved, event, time);
  const changed = changes(readModel.response, event, time);
  const response = { ...readModel.response, ...changed, updatedAt: time };
  response.refundableAmount = refundableAmount(response, unresolved);
  return { merchantId: readModel.merchantId, revision, unresolved, response };
};

/** Only captured payments have unresolved refunds: before a capture nothing is refundable. */
const leftToRefund = (response: PaymentResponse, unresolved: UnresolvedIntents): number => {
  const { capturedAmount, refundedAmount } = response;
  const reserved =
    capturedAmount === 0
      ? 0
      : intentsWithoutOutcome(unresolved).reduce((total, o) => total + o.amount, 0);
  return capturedAmount - refundedAmount - reserved;
};

/** What a dispute took is not there to be refunded. */
const refundableAmount = (response: PaymentResponse, unresolved: UnresolvedIntents): number => {
  const lost = (response.disputes ?? []).filter(({ status }) => status === 'LOST');
  const taken = lost.reduce((total, { amount }) => total + amount, 0);
  return Math.max(0, leftToRefund(response, unresolved) - taken);
};

/** The read model after a whole stream; undefined for an empty one. Throws as `project` does. */
export const foldReadModel = (events: Iterable<PlacedEvent>): PaymentReadModel | undefined => {
  let readModel: PaymentReadModel | undefined;
  for (const event of events) readModel = project(readModel, event);
  return readModel;
};

/** The JSON text of the response; no other code serializes it. */
export const bodyOf = (readModel: PaymentReadModel): string => JSON.stringify(readModel.response);

/** The body of the 402 for a payment whose create failed; undefined for any other payment. */
export const failureBodyOf = (readModel: PaymentReadModel): PaymentFailureResponse | undefined => {
  const { paymentId, merchantReference, amount, currency, status, transactions } =
    readModel.response;
  const failure = transactions[0]?.failure;
  if (status !== 'FAILED' || failure === undefined) return undefined;
  return {
    paymentId,
    ...(merchantReference === undefined ? {} : { merchantReference }),
    amount,
    currency,
    status,
    failure,
  };
};
