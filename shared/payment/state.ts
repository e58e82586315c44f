/**
 * What the rules need to know of a payment: its status with the amounts that belong to it, and
 * every operation that was ever begun on it, so that a repeat is recognised and an unresolved
 * operation is found.
 */
import {
  afterDisputeClosed,
  afterDisputed,
  afterExpiry,
  afterRefundFailed,
  afterRefundObserved,
} from './later.ts';
import type { FinalOutcome } from './outcome.ts';
import type { EventData, RequestIdentity } from './payment-events.ts';
import type { PlacedEvent } from './response.ts';
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

/** The kinds of operations at the provider. A sale is a create. */
export type OperationKind = 'create' | 'capture' | 'void' | 'refund';

/** One operation at the provider: its intent is stored; its outcome too where `ended` is present. */
export type Operation = {
  kind: OperationKind;
  operationId: string;
  /** From 1. A void carries the authorized amount. */
  amountMinor: number;
  identity: RequestIdentity;
  /** The revision of the intent event. */
  requestedAt: number;
  /** What the provider calls it: of a create, as soon as the provider has opened or approved it. */
  reference?: string;
  /** `revision` is that of the last event of the outcome: the response is the fold up to it. */
  ended?: { outcome: FinalOutcome; revision: number };
  /** A refund that was approved, and bounced later. */
  failedLater?: true;
  /** Present from a resolution by hand on, until it is confirmed (ADR-0099). */
  confirmation?: Confirmation;
  /** What one operator requested, and another one has not approved. */
  resolutionRequest?: ResolutionRequest;
};

/** An operator's request to resolve an operation by hand, as it is stored, and when it was made. */
export type ResolutionRequest = Pick<
  EventData<'PaymentResolutionRequested'>,
  'outcome' | 'evidence' | 'withoutFence' | 'requestedBy'
> & { requestedAt: string };

/** What every payment has from its first event on. */
type Known = {
  paymentId: string;
  merchantId: string;
  amount: number;
  currency: string;
  captureNow: boolean;
  /** Undefined where the provider of a token told none. */
  bin: string | undefined;
  last4: string;
  operations: Operation[];
  /** Refunds that were made elsewhere; `refundId` is the provider's. */
  observedRefunds?: ObservedRefund[];
  disputes?: Dispute[];
};
type ObservedRefund = {
  operationId: string;
  refundId: string;
  amountMinor: number;
  failedLater?: true;
};
/** A dispute of the cardholder's; `amount` in minor units. */
type Dispute = { disputeId: string; amount: number; status: 'OPEN' | 'WON' | 'LOST' };
type AuthorizedAmounts = { authorizedAmount: number };
type CapturedAmounts = AuthorizedAmounts & { capturedAmount: number; refundedAmount: number };

/** Amounts in minor units. A payment that does not exist has no state: it is undefined. */
export type PaymentState =
  | (Known & { status: 'PENDING' })
  | (Known & AuthorizedAmounts & { status: 'AUTHORIZED' })
  | (Known & CapturedAmounts & { status: 'CAPTURED' })
  | (Known & CapturedAmounts & { status: 'REFUNDED' })
  | (Known & AuthorizedAmounts & { status: 'VOIDED' })
  | (Known & { status: 'FAILED' });

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
  data: { operationId: string; amount: number; identity: RequestIdentity },
  requestedAt: number,
): Operation => {
  const { operationId, amount, identity } = data;
  return { kind, operationId, amountMinor: amount, identity, requestedAt };
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
  checkNote(event, { isUnresolved, confirmation: known?.confirmation });
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
    case 'PaymentOutcomeConfirmed':
      return operations.with(at, operation);
    case 'PaymentOutcomeContradicted':
      return operations.with(at, { ...operation, confirmation: 'CONTRADICTED' });
  }
};

/** The operations whose intent is stored and whose outcome is not, oldest first. */
export const unresolvedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.ended === undefined);

/** The operations that were resolved by hand and that nobody has confirmed, oldest first (ADR-0099). */
export const unconfirmedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.confirmation !== undefined);

/** Proven never carried out, so that its idempotency key is free again (gaps §7, §8). */
export const isFree = ({ ended }: Operation): boolean =>
  // seeded bug: free-key
  ended?.outcome === 'NOT_SENT' || ended?.outcome === 'FENCED';

/** A request by what it is recognised by: under the current secret, and under the older one. */
export type Recognised = {
  identity: RequestIdentity;
  previousIdentity?: RequestIdentity | undefined;
};

/** True for an operation that was stored under the request's key; false for a request without one. */
export const isUnderKeyOf = (
  { identity: { keyHash } }: Operation,
  { identity, previousIdentity }: Recognised,
): boolean =>
  keyHash !== undefined && (keyHash === identity.keyHash || keyHash === previousIdentity?.keyHash);

/** True for an operation that an equal request began. */
export const isOfSameRequest = (
  { identity: { fingerprint } }: Operation,
  { identity, previousIdentity }: Recognised,
): boolean => fingerprint === identity.fingerprint || fingerprint === previousIdentity?.fingerprint;

/** The latest operation under the request's key; undefined for none, and for no key. */
export const operationUnder = (state: PaymentState, request: Recognised): Operation | undefined =>
  state.operations.findLast((o) => isUnderKeyOf(o, request));

/** The authorization that a capture, void or refund names to the provider: the create, by its ids. */
export const authorizationOf = (
  state: PaymentState,
): { authorizationId: string; authorizationReference?: string } => {
  const { operationId, reference } = createOf(state);
  return {
    authorizationId: operationId,
    ...(reference !== undefined && { authorizationReference: reference }),
  };
};

const createOf = ({ operations, paymentId }: PaymentState): Operation => {
  const create = operations[0];
  if (create === undefined) throw new Error(`payment ${paymentId} has no create`);
  return create;
};
