/** The payment as responses show it, and every operation begun on it, to recognise repeats by. */
import type { EventData, PlacedEvent } from './payment-events.ts';
import {
  attempt,
  type Dispute,
  type Failure,
  failureOf,
  hasUnresolvedIntent,
  isIdOf,
  leftOfCapture,
  type PaymentFailureResponse,
  type PaymentReadModel,
  type PaymentResponse,
  refundAt,
  refundableAmount,
  type Transaction,
  type TransactionType,
  type UnresolvedIntents,
} from './payment-response.ts';
import {
  checkNote,
  checkOperation,
  checkStatus,
  confirmationAfter,
  type FollowingEvent,
  isIntent,
  isLater,
  isNote,
  type LaterEvent,
  type NoteEvent,
  statusAfterRefund,
  TRANSITIONS,
} from './transitions.ts';

/** Raise it with any change of `project` or PaymentReadModel: stored read models are then filled anew. */
export const READ_MODEL_VERSION = 7;

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
    metadata,
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
      status: 'PENDING',
      paymentMethod: { type: 'CARD', card: data.card, encryptedCard: cardWithoutLast4 },
      captureNow: data.captureNow,
      ...(descriptor === undefined ? {} : { descriptor }),
      ...(goodsType === undefined ? {} : { goodsType }),
      ...(productItems === undefined ? {} : { productItems }),
      ...(consumer === undefined ? {} : { consumer }),
      ...(billing === undefined ? {} : { billing }),
      ...(shipping === undefined ? {} : { shipping }),
      ...(metadata === undefined ? {} : { metadata }),
      createdAt: time,
      updatedAt: time,
      transactions: [],
      ...(source === undefined ? {} : { source }),
    },
  };
};

/** The fields of the response that an event changes, beside its status. */
const changes = (
  { response, unresolved }: PaymentReadModel,
  event: FollowingEvent | LaterEvent,
  time: string,
): Partial<PaymentResponse> => {
  const { captureNow, capturedAmount, transactions } = response;
  const adding = (type: TransactionType, failure?: Failure): { transactions: Transaction[] } => ({
    transactions: [...transactions, attempt(type, event.data, time, failure)],
  });
  const refunding = (amount: number) => {
    const refundedAmount = response.refundedAmount + amount;
    return { refundedAmount, status: statusAfterRefund(refundedAmount, capturedAmount) };
  };
  switch (event.type) {
    case 'PaymentAuthorized': {
      const { amount, authorizationExpiresAt } = event.data;
      return {
        authorizedAmount: amount,
        ...(captureNow ? {} : adding('AUTH')),
        ...(authorizationExpiresAt && { authorizationExpiresAt }),
      };
    }
    case 'PaymentCaptured':
      return { capturedAmount: event.data.amount, ...adding(captureNow ? 'SALE' : 'CAPTURE') };
    case 'PaymentVoided':
      return adding('VOID');
    case 'PaymentRefunded':
      return { ...refunding(event.data.amount), ...adding('REFUND') };
    case 'PaymentFailed':
      return adding(captureNow ? 'SALE' : 'AUTH', failureOf(event.data));
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
    case 'PaymentCaptureObserved':
      requireFit(event, !hasUnresolvedIntent(unresolved));
      return { capturedAmount: event.data.amount, ...adding('CAPTURE') };
    case 'PaymentAuthorizationExpiring':
      requireFit(event, !hasUnresolvedIntent(unresolved));
      return { updatedAt: response.updatedAt };
    case 'PaymentAuthorizationExpired':
    case 'PaymentVoidObserved':
      requireFit(event, !hasUnresolvedIntent(unresolved));
      return adding('VOID');
    case 'PaymentRefundFailed': {
      requireFit(event, !hasUnresolvedIntent(unresolved, event.data.operationId));
      const refundedAmount = response.refundedAmount - event.data.amount;
      return { refundedAmount, transactions: withFailedRefund(transactions, event) };
    }
    case 'PaymentRefundObserved': {
      const { operationId, amount } = event.data;
      const isTaken =
        hasUnresolvedIntent(unresolved, operationId) || refundAt(transactions, operationId) >= 0;
      requireFit(event, !isTaken && amount <= leftOfCapture(response, unresolved));
      return { ...refunding(amount), ...adding('REFUND') };
    }
    case 'PaymentDisputed':
    case 'PaymentDisputeClosed':
      return { disputes: disputesAfter(response, event, time) };
  }
};

/** Throws Error where a later result does not fit its payment. */
export const requireFit = ({ type }: LaterEvent, fits: boolean): void => {
  if (!fits) throw new Error(`${type} does not fit its payment`);
};

const withFailedRefund = (
  transactions: Transaction[],
  event: Extract<LaterEvent, { type: 'PaymentRefundFailed' }>,
): Transaction[] => {
  const { operationId, amount } = event.data;
  const at = refundAt(transactions, operationId);
  const refund = transactions[at];
  requireFit(event, refund?.result === 'SUCCEEDED' && refund.amount === amount);
  const { createdAt, result: _, ...kept } = refund as Transaction;
  const failed = { ...kept, result: 'FAILED' as const, failure: failureOf(event.data), createdAt };
  return transactions.with(at, failed);
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
  ...(response.status === 'AUTHORIZED' && authorizationExpiresAt && { authorizationExpiresAt }),
  ...(source === undefined ? {} : { source }),
});

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

const withoutNextAction = (response: PaymentResponse): PaymentResponse => {
  if (response.nextAction === undefined) return response;
  const { nextAction: _, ...rest } = response;
  return rest;
};

const unresolvedAfterNote = (
  unresolved: UnresolvedIntents,
  { type, data }: NoteEvent,
  since: string,
): UnresolvedIntents => {
  const { operationId, amount } = data;
  if (type === 'PaymentAuthenticationRequested')
    return unresolved.map((o) =>
      o.operationId === operationId ? { ...o, waitsUntil: data.expiresAt } : o,
    );
  if (type === 'PaymentOutcomeConfirmed')
    return unresolved.filter((o) => o.operationId !== operationId);
  if (type !== 'PaymentOutcomeContradicted') return unresolved;
  const isListed = unresolved.some((o) => o.operationId === operationId);
  const listed = isListed ? unresolved : [...unresolved, { operationId, amount, since }];
  return listed.map((o) =>
    o.operationId === operationId ? { ...o, confirmation: 'CONTRADICTED' } : o,
  );
};

const knownOf = (unresolved: UnresolvedIntents, operationId: string) => {
  const known = unresolved.find((o) => o.operationId === operationId);
  const confirmation = known?.confirmation;
  return { isUnresolved: known !== undefined && confirmation === undefined, confirmation };
};

const responseAfterNote = (
  { response }: PaymentReadModel,
  { type, data }: NoteEvent,
  time: string,
): PaymentResponse => {
  if (type !== 'PaymentAuthenticationRequested') return response;
  if (response.status !== 'PENDING') throw new Error(`${type} of a payment with an outcome`);
  const nextAction = { type: 'REDIRECT' as const, expiresAt: data.expiresAt };
  return inOrder({ ...response, updatedAt: time, nextAction });
};

const afterNote = (
  before: PaymentReadModel,
  note: NoteEvent,
  { revision, time }: Omit<PlacedEvent, 'event'>,
): PaymentReadModel => {
  const { operationId } = note.data;
  const hasFailed = before.response.transactions.some(
    ({ id, result }) => result === 'FAILED' && isIdOf(id, operationId),
  );
  checkNote(note, { ...knownOf(before.unresolved, operationId), hasFailed });
  const unresolved = unresolvedAfterNote(before.unresolved, note, time);
  return { ...before, revision, unresolved, response: responseAfterNote(before, note, time) };
};

/**
 * Applies one event; `readModel` is undefined before the first. Throws Error where the event cannot
 * follow: its revision is not the next one, the stream does not begin with PaymentCreated, or the table
 * of transitions excludes it.
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
  if (isNote(event)) return afterNote(readModel, event, { revision, time });
  const { merchantId } = readModel;
  const before = withoutNextAction(readModel.response);
  checkStatus(event, before.status);
  let { unresolved } = readModel;
  if (!isLater(event)) {
    const known = knownOf(unresolved, event.data.operationId);
    checkOperation(event, { ...known, captureNow: before.captureNow });
    unresolved = unresolvedAfter(unresolved, event, time);
  }
  const status = TRANSITIONS[event.type].to ?? before.status;
  const changed = { ...before, status, updatedAt: time, ...changes(readModel, event, time) };
  const response = inOrder(changed);
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
  return {
    paymentId,
    ...(merchantReference === undefined ? {} : { merchantReference }),
    ...(metadata === undefined ? {} : { metadata }),
    amount,
    currency,
    status,
    failure,
  };
};
