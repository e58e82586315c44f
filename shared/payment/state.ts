/** The state of a payment by its events: a fold of `evolve` over the stream. */
import {
  afterDisputeClosed,
  afterDisputed,
  afterExpiry,
  afterRefundFailed,
  afterRefundObserved,
} from './later.ts';
import type { EventData, PlacedEvent } from './payment-events.ts';
import {
  createOf,
  type Operation,
  type OperationKind,
  type PaymentState,
} from './payment-state.ts';
import {
  type Confirmation,
  checkLater,
  checkNote,
  checkOperation,
  confirmationAfter,
  type FollowingEvent,
  inStatusFor,
  isLater,
  isNote,
  type LaterEvent,
  type NoteEvent,
  statusAfterRefund,
  TRANSITIONS,
} from './transitions.ts';

/**
 * The state after one more event; `state` is undefined before the first one. Throws Error where the
 * event cannot follow the state: the rules never write such a stream, so it is damaged.
 */
export const evolve = (
  state: PaymentState | undefined,
  { event, revision, time }: PlacedEvent,
): PaymentState => {
  if (event.type === 'PaymentCreated') {
    if (state !== undefined) throw new Error('PaymentCreated is not the first event of its stream');
    return created(event.data, revision);
  }
  if (state === undefined) throw new Error('the stream has no PaymentCreated');
  if (isNote(event)) return { ...state, operations: withNote(state, event, time) };
  if (isLater(event)) return afterLater(state, event);
  const next = { event, revision };
  switch (event.type) {
    case 'PaymentAuthorized':
      return {
        ...inStatusFor(event.type, state),
        operations: operationsAfter(state, next),
        status: TRANSITIONS[event.type].to,
        authorizedAmount: event.data.amount,
      };
    case 'PaymentCaptured':
      return {
        ...inStatusFor(event.type, state),
        operations: operationsAfter(state, next),
        status: TRANSITIONS[event.type].to,
        capturedAmount: event.data.amount,
        refundedAmount: 0,
      };
    case 'PaymentRefunded': {
      const captured = inStatusFor(event.type, state);
      const operations = operationsAfter(state, next);
      const refundedAmount = captured.refundedAmount + event.data.amount;
      const status = statusAfterRefund(refundedAmount, captured.capturedAmount);
      return { ...captured, operations, status, refundedAmount };
    }
    case 'PaymentVoided':
      return {
        ...inStatusFor(event.type, state),
        operations: operationsAfter(state, next),
        status: TRANSITIONS[event.type].to,
      };
    case 'PaymentFailed':
      return {
        ...inStatusFor(event.type, state),
        operations: operationsAfter(state, next),
        status: TRANSITIONS[event.type].to,
      };
    case 'PaymentCaptureRequested':
    case 'PaymentCaptureDeclined':
    case 'PaymentVoidRequested':
    case 'PaymentVoidDeclined':
    case 'PaymentRefundRequested':
    case 'PaymentRefundDeclined':
      return { ...inStatusFor(event.type, state), operations: operationsAfter(state, next) };
  }
};

const afterLater = (state: PaymentState, event: LaterEvent): PaymentState => {
  checkLater(event, state.status);
  switch (event.type) {
    case 'PaymentAuthorizationExpired':
      return afterExpiry(state);
    case 'PaymentRefundFailed':
      return afterRefundFailed(state, event.data);
    case 'PaymentRefundObserved':
      return afterRefundObserved(state, event.data);
    case 'PaymentDisputed':
      return afterDisputed(state, event.data);
    case 'PaymentDisputeClosed':
      return afterDisputeClosed(state, event.data);
  }
};

/** The state after a whole stream; undefined for an empty one. Throws as `evolve` does. */
export const foldState = (events: Iterable<PlacedEvent>): PaymentState | undefined => {
  let state: PaymentState | undefined;
  for (const event of events) state = evolve(state, event);
  return state;
};

const created = (data: EventData<'PaymentCreated'>, revision: number): PaymentState => ({
  status: TRANSITIONS.PaymentCreated.to,
  paymentId: data.paymentId,
  merchantId: data.merchantId,
  amount: data.amount,
  currency: data.currency,
  captureNow: data.captureNow,
  bin: data.card.bin,
  last4: data.card.last4,
  operations: [newOperation('create', data, revision)],
});

const newOperation = (
  kind: OperationKind,
  data: Pick<EventData<'PaymentCreated'>, 'operationId' | 'amount' | 'identity' | 'provider'>,
  requestedAt: number,
): Operation => {
  const { operationId, amount, identity, provider } = data;
  const operation = { kind, operationId, amountMinor: amount, identity, requestedAt };
  return provider === undefined ? operation : { ...operation, provider };
};

type Ended = NonNullable<Operation['ended']>;

type Next = { event: FollowingEvent; revision: number };

/** The operations after an event: an intent adds one, any other event ends one. */
const operationsAfter = (state: PaymentState, { event, revision }: Next): Operation[] => {
  const { operations, captureNow } = state;
  // From the end: an outcome mostly follows its intent soon, and a payment can have thousands of refunds.
  const at = operations.findLastIndex((o) => o.operationId === event.data.operationId);
  const isUnresolved = operations[at] !== undefined && operations[at].ended === undefined;
  const createOperationId = createOf(state).operationId;
  const isUnconfirmed = operations[at]?.confirmation !== undefined;
  checkOperation(event, { isUnresolved, isUnconfirmed, captureNow, createOperationId });
  switch (event.type) {
    case 'PaymentCaptureRequested':
      return [...operations, newOperation('capture', event.data, revision)];
    case 'PaymentVoidRequested':
      return [...operations, newOperation('void', event.data, revision)];
    case 'PaymentRefundRequested':
      return [...operations, newOperation('refund', event.data, revision)];
    default: {
      const outcome = 'outcome' in event.data ? event.data.outcome : 'APPROVED';
      const confirmation = confirmationAfter(event);
      if (event.type === 'PaymentAuthorized') {
        const { providerReference: reference } = event.data;
        const known = reference === undefined ? operations : withReference(operations, reference);
        return withOutcome(known, 0, { outcome, revision }, confirmation);
      }
      const known = isRefundOutcome(event) ? withRefund(operations, at, event.data) : operations;
      // The one outcome without an unresolved intent is a sale's capture, which belongs to the create.
      return withOutcome(known, isUnresolved ? at : 0, { outcome, revision }, confirmation);
    }
  }
};

const withReference = ([create, ...others]: Operation[], reference: string): Operation[] =>
  create === undefined ? [] : [{ ...create, reference }, ...others];

const isRefundOutcome = ({ type }: FollowingEvent): boolean =>
  type === 'PaymentRefunded' || type === 'PaymentRefundDeclined';

/** The outcome says what was refunded, so that a refund which bounces takes just that back (L5). */
const withRefund = (operations: Operation[], at: number, { amount }: { amount: number }) =>
  operations.with(at, { ...(operations[at] as Operation), kind: 'refund', amountMinor: amount });

const withOutcome = (
  operations: Operation[],
  at: number,
  ended: Ended,
  unconfirmed: Confirmation | undefined,
): Operation[] => {
  const { resolutionRequest: _, ...operation } = operations[at] as Operation;
  // The second outcome of a sale finds what the first one has left.
  const confirmation = operation.confirmation ?? unconfirmed;
  return operations.with(at, { ...operation, ended, ...(confirmation && { confirmation }) });
};

const withNote = ({ operations }: PaymentState, event: NoteEvent, time: string): Operation[] => {
  const at = operations.findLastIndex((o) => o.operationId === event.data.operationId);
  const known = operations[at];
  const isUnresolved = known !== undefined && known.ended === undefined;
  const hasFailed = operations.some(
    ({ operationId, ended, failedLater }) =>
      operationId === event.data.operationId &&
      (failedLater ?? (ended !== undefined && ended.outcome !== 'APPROVED')),
  );
  checkNote(event, { isUnresolved, confirmation: known?.confirmation, hasFailed });
  if (event.type === 'PaymentProviderOpened')
    return operations.with(at, {
      ...(known as Operation),
      reference: event.data.providerReference,
    });
  const { confirmation, resolutionRequest: _, ...operation } = known as Operation;
  switch (event.type) {
    case 'PaymentResolutionRequested': {
      const { outcome, evidence, withoutFence, requestedBy } = event.data;
      const request = { outcome, evidence, requestedBy, requestedAt: time };
      return operations.with(at, {
        ...operation,
        ...(confirmation && { confirmation }),
        resolutionRequest: { ...request, ...(withoutFence && { withoutFence }) },
      });
    }
    case 'PaymentOutcomeConfirmed': {
      const isByHand = confirmation === 'CONTRADICTED' && event.data.resolution !== undefined;
      return operations.with(at, { ...operation, ...(isByHand && { contradictionEnded: true }) });
    }
    case 'PaymentOutcomeContradicted':
      return operations.with(at, { ...operation, confirmation: 'CONTRADICTED' });
  }
};
