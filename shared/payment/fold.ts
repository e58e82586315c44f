/** The one fold: each event changes the state or is damage. The rules alone need the operations. */
import type { EventData, PaymentEvent, PlacedEvent } from './events.ts';
import type { Dispute, Transaction } from './fields.ts';
import { failureOf, transactionId } from './response.ts';
import {
  amountOfRefund,
  type ErasureState,
  intentsWithoutOutcome,
  leftOfCapture,
  type ObservedRefund,
  type Operation,
  type PaymentReadModel,
  type PaymentState,
  refundableAmount,
  type UnresolvedIntent,
} from './state.ts';
import {
  amountsAfter,
  type ErasureEvent,
  type FollowingEvent,
  INTENDED,
  type IntentEvent,
  isIntent,
  isLater,
  isNote,
  isOfErasure,
  type LaterEvent,
  minor,
  NO_AMOUNTS,
  type NoteEvent,
  type OutcomeEvent,
  TRANSITIONS,
} from './transitions.ts';

/** Raise it with any change of `project` or PaymentReadModel: stored read models are then filled anew. */
export const READ_MODEL_VERSION = 8;

const created = (data: EventData<'PaymentCreated'>, time: string): PaymentReadModel => {
  const { paymentId, merchantId, operationId, amount, currency, captureNow, card } = data;
  const { details, personal } = data;
  const { last4: _last4, ...encryptedCard } = card;
  return {
    paymentId,
    merchantId,
    personal,
    revision: 0,
    unresolved: [{ operationId, amount, since: time }],
    amount,
    ...NO_AMOUNTS,
    refundableAmount: minor(0),
    currency,
    status: 'PENDING',
    paymentMethod: { type: 'CARD', card, encryptedCard },
    captureNow,
    createdAt: time,
    updatedAt: time,
    transactions: [],
    ...details,
  };
};

const misfit = ({ type }: PaymentEvent, what = 'payment'): Error =>
  new Error(`${type} does not fit its ${what}`);

const withoutIntent = ({ type }: PaymentEvent): Error =>
  new Error(`${type} without an unresolved intent of its operation`);

/** The operation has an intent, and no outcome: `isUnresolved`. */
const knownOf = ({ unresolved }: PaymentReadModel, operationId: string) => {
  const known = unresolved.find((o) => o.operationId === operationId);
  return { known, isUnresolved: known !== undefined && known.confirmation === undefined };
};

/**
 * Throws Error for an intent of an operation without an outcome or unconfirmed, and for an outcome without an
 * unresolved intent. A sale has two outcomes: PaymentCaptured after PaymentAuthorized has ended the create.
 */
const unresolvedAfter = (
  payment: PaymentReadModel,
  event: FollowingEvent,
  since: string,
): UnresolvedIntent[] => {
  const { operationId, amount } = event.data;
  const { unresolved, captureNow } = payment;
  const { known, isUnresolved } = knownOf(payment, operationId);
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

/** Throws Error where a note does not fit its operation: `fits` says when it does. */
const unresolvedAfterNote = (
  payment: PaymentReadModel,
  note: NoteEvent,
  since: string,
): UnresolvedIntent[] => {
  const { type, data } = note;
  const { operationId, amount } = data;
  const { unresolved, transactions, status } = payment;
  const { known, isUnresolved } = knownOf(payment, operationId);
  const confirmation = known?.confirmation;
  const hasFailed = transactions.some(
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
  if (!fits[type]) throw misfit(note, 'operation');
  if (type === 'PaymentAuthenticationRequested' && status !== 'PENDING')
    throw new Error(`${type} of a payment with an outcome`);
  const noting = (changed: Partial<UnresolvedIntent>): UnresolvedIntent[] =>
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

/** The place of the operation's refund in the list; -1 where none has ended. */
const refundAt = (transactions: readonly Transaction[], operationId: string): number =>
  transactions.findLastIndex(({ id }) => id === transactionId('REFUND', operationId));

const fitsPayment = (payment: PaymentReadModel, event: LaterEvent): boolean => {
  const { operationId, amount } = event.data;
  const open = intentsWithoutOutcome(payment);
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
        refundAt(payment.transactions, operationId) === -1 &&
        amount <= leftOfCapture(payment)
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
  { transactions, captureNow }: PaymentReadModel,
  event: FollowingEvent | LaterEvent,
  createdAt: string,
): Transaction[] => {
  const { type, data } = event;
  if (type === 'PaymentRefundFailed') return withFailedRefund(transactions, event);
  const attempt = attemptBy(type, captureNow);
  if (attempt === undefined) return transactions;
  const { operationId, amount } = data;
  const made = { id: transactionId(attempt, operationId), type: attempt, amount };
  const failure = 'failureCode' in data ? failureOf(data) : undefined;
  const result = failure === undefined ? 'SUCCEEDED' : 'FAILED';
  return [...transactions, { ...made, result, failure, createdAt }];
};

const disputesAfter = (
  disputes: Dispute[] | undefined,
  event: FollowingEvent | LaterEvent,
  createdAt: string,
): Dispute[] | undefined => {
  if (event.type !== 'PaymentDisputed' && event.type !== 'PaymentDisputeClosed') return disputes;
  const { disputeId: id, amount } = event.data;
  const all = disputes ?? [];
  const known = all.find((one) => one.id === id);
  if (event.type === 'PaymentDisputed') {
    if (known !== undefined) throw misfit(event);
    const { reason } = event.data;
    return [...all, { id, amount, reason, status: 'OPEN', createdAt }];
  }
  const { status } = event.data;
  if (known?.status !== 'OPEN' && !(known?.status === 'LOST' && status === 'WON'))
    throw misfit(event);
  return all.map((one) => (one.id === id ? { ...one, status } : one));
};

const afterNote = <P extends PaymentReadModel>(
  payment: P,
  note: NoteEvent,
  { revision, time }: Omit<PlacedEvent, 'event'>,
): P => {
  const after = { ...payment, revision, unresolved: unresolvedAfterNote(payment, note, time) };
  if (note.type !== 'PaymentAuthenticationRequested') return after;
  const nextAction = { type: 'REDIRECT' as const, expiresAt: note.data.expiresAt };
  return Object.assign(after, { nextAction, updatedAt: time });
};

/** None changes the payment itself, or its time. */
const afterErasure = (
  payment: PaymentReadModel,
  event: ErasureEvent,
  { revision, time }: Omit<PlacedEvent, 'event'>,
): PaymentReadModel => {
  if (payment.personal.erasedAt !== undefined) throw misfit(event);
  const { personal } = payment;
  const isErased = event.type === 'PaymentPersonalDataErased';
  return { ...payment, revision, personal: isErased ? { erasedAt: time } : personal };
};

/**
 * Applies one event to `payment`, undefined before the first; its operations stay. Throws Error where the
 * revision is not the next, PaymentCreated is not the first, or the table of transitions excludes the event.
 */
export const project = (
  payment: PaymentReadModel | undefined,
  { event, ...place }: PlacedEvent,
): PaymentReadModel => {
  const { revision, time } = place;
  const next = payment === undefined ? 0 : payment.revision + 1;
  if (revision !== next) throw new Error(`revision ${revision} where ${next} follows`);
  if (event.type === 'PaymentCreated') {
    if (payment === undefined) return created(event.data, time);
    throw new Error('PaymentCreated is not the first event of its stream');
  }
  if (payment === undefined) throw new Error('the stream has no PaymentCreated');
  if (isNote(event)) return afterNote(payment, event, place);
  if (isOfErasure(event)) return afterErasure(payment, event, place);
  const { from, to = payment.status } = TRANSITIONS[event.type];
  if (!from.includes(payment.status))
    throw new Error(`${event.type} cannot follow status ${payment.status}`);
  if (isLater(event) && !fitsPayment(payment, event)) throw misfit(event);
  const after: PaymentReadModel = {
    ...payment,
    ...amountsAfter(payment, event),
    revision,
    unresolved: isLater(event) ? payment.unresolved : unresolvedAfter(payment, event, time),
    status: to,
    updatedAt: event.type === 'PaymentAuthorizationExpiring' ? payment.updatedAt : time,
    transactions: transactionsAfter(payment, event, time),
    disputes: disputesAfter(payment.disputes, event, time),
    nextAction: undefined,
  };
  if (event.type === 'PaymentAuthorized')
    after.authorizationExpiresAt = event.data.authorizationExpiresAt;
  if (to !== 'AUTHORIZED') after.authorizationExpiresAt = undefined;
  if (to === 'CAPTURED' && after.refundedAmount >= after.capturedAmount) after.status = 'REFUNDED';
  after.refundableAmount = refundableAmount(after);
  return after;
};

/** `state` is undefined at first. Throws Error as `project`, and where an operation was never begun. */
export const evolve = (state: PaymentState | undefined, next: PlacedEvent): PaymentState => {
  const { operations = [], observedRefunds = [], erasure = NOTHING_SEALED } = state ?? {};
  const payment = project(state, next);
  const { type, data } = next.event;
  // A transaction shows a part of the id alone.
  const refunds = { operations, observedRefunds };
  if (type === 'PaymentRefundFailed' && amountOfRefund(refunds, data.operationId) !== data.amount)
    throw misfit(next.event);
  return Object.assign(payment, {
    operations: operationsAfter(operations, next, payment),
    observedRefunds: observedAfter(observedRefunds, next.event),
    erasure: erasureAfter(erasure, next),
  });
};

const NOTHING_SEALED: ErasureState = { keys: [], hasClear: false };

const erasureAfter = (before: ErasureState, { event, time }: PlacedEvent): ErasureState => {
  const { type, data } = event;
  if (type === 'PaymentErasureRequested') return { ...before, requested: { ...data, at: time } };
  if (type === 'PaymentErasureHeld' || type === 'PaymentErasureReleased')
    return { ...before, heldBy: type === 'PaymentErasureHeld' ? data.ticket : undefined };
  if (!isIntent(event)) return before;
  const stored = event.type === 'PaymentCreated' ? event.data.personal : event.data.reason;
  if (stored?.key === undefined) return { ...before, hasClear: before.hasClear || !!stored };
  return { ...before, keys: [...before.keys, stored.key] };
};

const foldBy =
  <T>(step: (before: T | undefined, event: PlacedEvent) => T) =>
  (events: Iterable<PlacedEvent>): T | undefined => {
    let folded: T | undefined;
    for (const event of events) folded = step(folded, event);
    return folded;
  };

/** Undefined for an empty stream. Throws as `project` does. */
export const foldReadModel = foldBy(project);

/** Undefined for an empty stream. Throws as `evolve` does. */
export const foldState = foldBy(evolve);

/** The operations after an event that fits the read model. */
const operationsAfter = (
  operations: Operation[],
  { event, revision, time }: PlacedEvent,
  { unresolved }: PaymentReadModel,
): Operation[] => {
  if (isOfErasure(event)) return operations;
  if (isIntent(event)) return [...operations, begun(event, revision)];
  const { operationId } = event.data;
  if (event.type === 'PaymentAuthorizationExpiring')
    return operations.map(marking(operationId, 'noticedExpiring'));
  if (event.type === 'PaymentRefundFailed')
    return operations.map(marking(operationId, 'failedLater'));
  if (isLater(event)) return operations;
  // From the end: an outcome mostly follows its intent soon, and there can be thousands of refunds.
  const at = operations.findLastIndex((o) => o.operationId === operationId);
  const known = operations[at];
  const confirmation = unresolved.find((o) => o.operationId === operationId)?.confirmation;
  if (isNote(event)) {
    // A read model does not tell an operation from a refund that was made elsewhere.
    if (known === undefined) throw misfit(event, 'operation');
    return operations.with(at, { ...noted(known, event, time), confirmation });
  }
  // The one outcome without an unresolved intent is a sale's capture, which belongs to the create.
  if (known === undefined || (known.ended !== undefined && at > 0)) throw withoutIntent(event);
  return operations.with(at, { ...ended(known, event, revision), confirmation });
};

const begun = ({ type, data }: IntentEvent, requestedAt: number): Operation => {
  const { operationId, amount, identity, provider } = data;
  const operation = { operationId, amount, identity, requestedAt, provider };
  const mayAsk = 'authentication' in data && data.authentication === true;
  return { kind: INTENDED[type], ...operation, ...(mayAsk && { authentication: true }) };
};

const ended = (
  operation: Operation,
  { type, data }: OutcomeEvent,
  revision: number,
): Operation => ({
  ...operation,
  ...(type === 'PaymentAuthorized' &&
    data.providerReference !== undefined && { reference: data.providerReference }),
  // The outcome says what was refunded, so that a refund which bounces takes just that back (L5).
  amount: data.amount,
  ended: { outcome: 'outcome' in data ? data.outcome : 'APPROVED', revision },
  resolutionRequest: undefined,
});

const noted = (operation: Operation, { type, data }: NoteEvent, time: string): Operation => {
  switch (type) {
    case 'PaymentProviderOpened':
      return { ...operation, reference: data.providerReference };
    case 'PaymentAuthenticationRequested':
      return { ...operation, authentication: true, waitsUntil: data.expiresAt };
    case 'PaymentResolutionRequested': {
      const { outcome, evidence, withoutFence, requestedBy } = data;
      const resolutionRequest = { outcome, evidence, withoutFence, requestedBy, requestedAt: time };
      return { ...operation, resolutionRequest };
    }
    case 'PaymentOutcomeConfirmed': {
      const confirmed = { ...operation, resolutionRequest: undefined };
      return data.resolution === undefined ? confirmed : { ...confirmed, contradictionEnded: true };
    }
    case 'PaymentOutcomeContradicted':
      return { ...operation, resolutionRequest: undefined };
  }
};

const marking =
  (operationId: string, mark: 'failedLater' | 'noticedExpiring') =>
  <T extends { operationId: string }>(one: T): T =>
    one.operationId === operationId ? { ...one, [mark]: true } : one;

const observedAfter = (
  observed: ObservedRefund[],
  { type, data }: PlacedEvent['event'],
): ObservedRefund[] => {
  if (type === 'PaymentRefundFailed') return observed.map(marking(data.operationId, 'failedLater'));
  if (type !== 'PaymentRefundObserved') return observed;
  const { operationId, refundId, amount } = data;
  return [...observed, { operationId, refundId, amount }];
};
