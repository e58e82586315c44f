/** The one fold of a payment: what responses show of it, and which of its operations are unresolved. */
import type { EventData, PlacedEvent } from './events.ts';
import {
  type Dispute,
  failureOf,
  intentsWithoutOutcome,
  leftOfCapture,
  type PaymentFailureResponse,
  type PaymentReadModel,
  type PaymentResponse,
  refundAt,
  refundableAmount,
  type Transaction,
  transactionId,
  type UnresolvedIntents,
} from './payment-response.ts';
import {
  type FollowingEvent,
  isIntent,
  isLater,
  isNote,
  type LaterEvent,
  type NoteEvent,
  TRANSITIONS,
} from './transitions.ts';

/** Raise it with any change of `project` or PaymentReadModel: stored read models are then filled anew. */
export const READ_MODEL_VERSION = 7;

type Place = Omit<PlacedEvent, 'event'>;

const created = (
  { paymentId, merchantId, operationId, amount, currency, ...data }: EventData<'PaymentCreated'>,
  { revision, time }: Place,
): PaymentReadModel => {
  const { captureNow, card, details } = data;
  const { last4: _, ...encryptedCard } = card;
  return {
    merchantId,
    revision,
    unresolved: [{ operationId, amount, since: time }],
    response: {
      paymentId,
      merchantReference: details.merchantReference,
      amount,
      authorizedAmount: 0,
      capturedAmount: 0,
      refundedAmount: 0,
      refundableAmount: 0,
      currency,
      status: 'PENDING',
      paymentMethod: { type: 'CARD', card, encryptedCard },
      captureNow,
      descriptor: details.descriptor,
      goodsType: details.goodsType,
      productItems: details.productItems,
      consumer: details.consumer,
      billing: details.billing,
      shipping: details.shipping,
      metadata: details.metadata,
      createdAt: time,
      updatedAt: time,
      transactions: [],
      source: details.source,
    },
  };
};

/** A sale is one attempt, with two outcomes where it is approved. */
const attemptBy = (
  type: (FollowingEvent | LaterEvent)['type'],
  captureNow: boolean,
): Transaction['type'] | undefined => {
  if (captureNow && type === 'PaymentAuthorized') return undefined;
  const isOfSale = captureNow && (type === 'PaymentCaptured' || type === 'PaymentFailed');
  return isOfSale ? 'SALE' : TRANSITIONS[type].attempt;
};

const transactionsAfter = (
  { transactions, captureNow }: PaymentResponse,
  { type, data }: FollowingEvent | LaterEvent,
  createdAt: string,
): Transaction[] => {
  const attempt = attemptBy(type, captureNow);
  if (attempt === undefined) return transactions;
  const { operationId, amount } = data;
  const made = { id: transactionId(attempt, operationId), type: attempt, amount };
  const failure = 'failureCode' in data ? failureOf(data) : undefined;
  const result = failure === undefined ? 'SUCCEEDED' : 'FAILED';
  return [...transactions, { ...made, result, failure, createdAt }];
};

/** The fields of the response that an event changes, beside its status and the attempts. */
const changes = (
  response: PaymentResponse,
  event: FollowingEvent | LaterEvent,
  time: string,
): Partial<PaymentResponse> => {
  const { amount } = event.data;
  switch (event.type) {
    case 'PaymentAuthorized':
      return {
        authorizedAmount: amount,
        authorizationExpiresAt: event.data.authorizationExpiresAt,
      };
    case 'PaymentCaptured':
    case 'PaymentCaptureObserved':
      return { capturedAmount: amount };
    case 'PaymentRefunded':
    case 'PaymentRefundObserved': {
      const refundedAmount = response.refundedAmount + amount;
      const isWhole = refundedAmount >= response.capturedAmount;
      return { refundedAmount, status: isWhole ? 'REFUNDED' : 'CAPTURED' };
    }
    case 'PaymentRefundFailed':
      return {
        refundedAmount: response.refundedAmount - amount,
        transactions: withFailedRefund(response.transactions, event),
      };
    case 'PaymentDisputed':
    case 'PaymentDisputeClosed':
      return { disputes: disputesAfter(response, event, time) };
    case 'PaymentAuthorizationExpiring':
      return { updatedAt: response.updatedAt };
    default:
      return {};
  }
};

const misfit = ({ type }: LaterEvent): Error => new Error(`${type} does not fit its payment`);

/** Throws Error where a later result does not fit its payment. */
export const requireFit = (event: LaterEvent, fits: boolean): void => {
  if (!fits) throw misfit(event);
};

const fitsPayment = ({ response, unresolved }: PaymentReadModel, event: LaterEvent): boolean => {
  const { operationId, amount } = event.data;
  const open = intentsWithoutOutcome(unresolved);
  const isOpen = open.some((o) => o.operationId === operationId);
  switch (event.type) {
    case 'PaymentDisputed':
    case 'PaymentDisputeClosed':
      return true;
    case 'PaymentRefundFailed':
      return !isOpen;
    case 'PaymentRefundObserved':
      return (
        !isOpen &&
        refundAt(response.transactions, operationId) < 0 &&
        amount <= leftOfCapture(response, unresolved)
      );
    default:
      return open.length === 0;
  }
};

const withFailedRefund = (
  transactions: Transaction[],
  event: Extract<LaterEvent, { type: 'PaymentRefundFailed' }>,
): Transaction[] => {
  const { operationId, amount } = event.data;
  const at = refundAt(transactions, operationId);
  const refund = transactions[at];
  if (refund?.result !== 'SUCCEEDED' || refund.amount !== amount) throw misfit(event);
  const { id, type, createdAt } = refund;
  const failure = failureOf(event.data);
  return transactions.with(at, { id, type, amount, result: 'FAILED', failure, createdAt });
};

const disputesAfter = (
  { disputes = [] }: PaymentResponse,
  event: Extract<LaterEvent, { type: `PaymentDispute${string}` }>,
  time: string,
): Dispute[] => {
  const { disputeId: id, amount } = event.data;
  const known = disputes.find((one) => one.id === id);
  if (event.type === 'PaymentDisputed') {
    requireFit(event, known === undefined);
    const { reason } = event.data;
    return [...disputes, { id, amount, reason, status: 'OPEN', createdAt: time }];
  }
  const { status } = event.data;
  requireFit(event, known?.status === 'OPEN' || (known?.status === 'LOST' && status === 'WON'));
  return disputes.map((one) => (one.id === id ? { ...one, status } : one));
};

/** What comes later stands before the source; only an AUTHORIZED payment can expire. */
const inOrder = ({
  source,
  authorizationExpiresAt,
  ...response
}: PaymentResponse): PaymentResponse => ({
  ...response,
  ...(response.status === 'AUTHORIZED' && { authorizationExpiresAt }),
  source,
});

/** The operation has an intent, and no outcome: `isUnresolved`. */
const knownOf = (unresolved: UnresolvedIntents, operationId: string) => {
  const known = unresolved.find((o) => o.operationId === operationId);
  return { known, isUnresolved: known !== undefined && known.confirmation === undefined };
};

export const withoutIntent = ({ type }: FollowingEvent): Error =>
  new Error(`${type} without an unresolved intent of its operation`);

/**
 * Throws Error where an intent begins an operation that has no outcome yet, or is not confirmed, and
 * where an outcome has no unresolved intent. A sale is one operation with two outcomes: its
 * PaymentCaptured comes when PaymentAuthorized has ended the create.
 */
const unresolvedAfter = (
  { unresolved, response: { captureNow } }: PaymentReadModel,
  event: FollowingEvent,
  since: string,
): UnresolvedIntents => {
  const { operationId, amount } = event.data;
  const { known, isUnresolved } = knownOf(unresolved, operationId);
  if (isIntent(event)) {
    if (known !== undefined)
      throw new Error(`${event.type} of an operation that has begun already`);
    return [...unresolved, { operationId, amount, since }];
  }
  if (!isUnresolved && !(event.type === 'PaymentCaptured' && captureNow))
    throw withoutIntent(event);
  // The second outcome of a sale finds what the first one has left.
  if (known?.confirmation !== undefined) return unresolved;
  const left = unresolved.filter((o) => o !== known);
  if (event.data.resolution === undefined) return left;
  return [...left, { operationId, amount, since, confirmation: 'UNCONFIRMED' }];
};

export const noteMisfit = ({ type }: NoteEvent): Error =>
  new Error(`${type} does not fit its operation`);

/**
 * Throws Error where a note does not fit its operation: a provider opens something for one without an
 * outcome, or wants its shopper, a resolution is requested of such a one or of a contradicted one,
 * only an unconfirmed one is confirmed, and that or a failed attempt is contradicted.
 */
const unresolvedAfterNote = (
  { unresolved, response }: PaymentReadModel,
  note: NoteEvent,
  since: string,
): UnresolvedIntents => {
  const { type, data } = note;
  const { operationId, amount } = data;
  const { known, isUnresolved } = knownOf(unresolved, operationId);
  const confirmation = known?.confirmation;
  const hasFailed = response.transactions.some(
    ({ id, result }) => result === 'FAILED' && id.endsWith(operationId.slice(-26)),
  );
  const fits = {
    PaymentProviderOpened: isUnresolved,
    PaymentAuthenticationRequested: isUnresolved,
    PaymentResolutionRequested: isUnresolved || confirmation === 'CONTRADICTED',
    PaymentOutcomeConfirmed: confirmation !== undefined,
    PaymentOutcomeContradicted:
      confirmation === 'UNCONFIRMED' || (known === undefined && hasFailed),
  };
  if (!fits[type]) throw noteMisfit(note);
  if (type === 'PaymentAuthenticationRequested' && response.status !== 'PENDING')
    throw new Error(`${type} of a payment with an outcome`);
  const noting = (changed: Partial<UnresolvedIntents[number]>): UnresolvedIntents =>
    unresolved.map((o) => (o === known ? { ...o, ...changed } : o));
  switch (type) {
    case 'PaymentAuthenticationRequested':
      return noting({ waitsUntil: data.expiresAt });
    case 'PaymentOutcomeConfirmed':
      return unresolved.filter((o) => o !== known);
    case 'PaymentOutcomeContradicted':
      return known === undefined
        ? [...unresolved, { operationId, amount, since, confirmation: 'CONTRADICTED' }]
        : noting({ confirmation: 'CONTRADICTED' });
    default:
      return unresolved;
  }
};

const responseAfterNote = (
  response: PaymentResponse,
  { type, data }: NoteEvent,
  updatedAt: string,
): PaymentResponse => {
  if (type !== 'PaymentAuthenticationRequested') return response;
  const nextAction = { type: 'REDIRECT' as const, expiresAt: data.expiresAt };
  return inOrder({ ...response, updatedAt, nextAction });
};

/**
 * Applies one event; `readModel` is undefined before the first. Throws Error where the event cannot
 * follow: its revision is not the next one, the stream does not begin with PaymentCreated, or the table
 * of transitions excludes it.
 */
export const project = (
  readModel: PaymentReadModel | undefined,
  { event, ...place }: PlacedEvent,
): PaymentReadModel => {
  const { revision, time } = place;
  const next = readModel === undefined ? 0 : readModel.revision + 1;
  if (revision !== next) throw new Error(`revision ${revision} where ${next} follows`);
  if (event.type === 'PaymentCreated') {
    if (readModel === undefined) return created(event.data, place);
    throw new Error('PaymentCreated is not the first event of its stream');
  }
  if (readModel === undefined) throw new Error('the stream has no PaymentCreated');
  const { merchantId, response: before } = readModel;
  if (isNote(event)) {
    const unresolved = unresolvedAfterNote(readModel, event, time);
    return { merchantId, revision, unresolved, response: responseAfterNote(before, event, time) };
  }
  const { from, to = before.status } = TRANSITIONS[event.type];
  if (!from.includes(before.status))
    throw new Error(`${event.type} cannot follow status ${before.status}`);
  if (isLater(event)) requireFit(event, fitsPayment(readModel, event));
  const unresolved = isLater(event)
    ? readModel.unresolved
    : unresolvedAfter(readModel, event, time);
  const response = inOrder({
    ...before,
    nextAction: undefined,
    status: to,
    updatedAt: time,
    transactions: transactionsAfter(before, event, time),
    ...changes(before, event, time),
  });
  response.refundableAmount = refundableAmount(response, unresolved);
  return { merchantId, revision, unresolved, response };
};

/** Undefined for an empty stream. Throws as `project` does. */
export const foldReadModel = (events: Iterable<PlacedEvent>): PaymentReadModel | undefined => {
  let readModel: PaymentReadModel | undefined;
  for (const event of events) readModel = project(readModel, event);
  return readModel;
};

/** The JSON text of the response; no other code serializes it. */
export const bodyOf = (readModel: PaymentReadModel): string => JSON.stringify(readModel.response);

/** The body of the 202, with the address that the shopper has to be sent to (gaps §21). */
export const actionBodyOf = ({ response }: PaymentReadModel, url: string): string => {
  const { nextAction, ...rest } = response;
  if (nextAction === undefined) throw new Error('the payment waits for no shopper');
  const { type, expiresAt } = nextAction;
  return JSON.stringify(inOrder({ ...rest, nextAction: { type, url, expiresAt } }));
};

/** The body of the 402 for a payment whose create failed; undefined for any other payment. */
export const failureBodyOf = (readModel: PaymentReadModel): PaymentFailureResponse | undefined => {
  const { paymentId, merchantReference, metadata, amount, currency, status, transactions } =
    readModel.response;
  const failure = transactions[0]?.failure;
  if (status !== 'FAILED' || failure === undefined) return undefined;
  return { paymentId, merchantReference, metadata, amount, currency, status, failure };
};
