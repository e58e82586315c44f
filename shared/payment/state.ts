import type { PlacedEvent } from './payment-events.ts';
import {
  type ObservedRefund,
  type Operation,
  type OperationKind,
  type PaymentState,
  refundOf,
} from './payment-state.ts';
import { project, requireFit } from './response.ts';
import {
  checkNote,
  confirmationAfter,
  type IntentEvent,
  isIntent,
  isLater,
  isNote,
  type LaterEvent,
  type NoteEvent,
  type OutcomeEvent,
  withoutIntent,
} from './transitions.ts';

/** `state` is undefined at first. Throws Error where the event cannot follow: the stream is damaged. */
export const evolve = (state: PaymentState | undefined, next: PlacedEvent): PaymentState => {
  const { event } = next;
  const readModel = project(state?.readModel, next);
  if (event.type === 'PaymentRefundFailed' && state !== undefined)
    requireFit(event, refundOf(state, event.data.operationId) === event.data.amount);
  const observedRefunds = observedAfter(state?.observedRefunds, event);
  return {
    ...readModel.response,
    merchantId: readModel.merchantId,
    readModel,
    operations: operationsAfter(state?.operations ?? [], next),
    ...(observedRefunds && { observedRefunds }),
  };
};

/** Undefined for an empty stream. Throws as `evolve` does. */
export const foldState = (events: Iterable<PlacedEvent>): PaymentState | undefined => {
  let state: PaymentState | undefined;
  for (const event of events) state = evolve(state, event);
  return state;
};

/** The operations after an event that fits the read model. */
const operationsAfter = (operations: Operation[], { event, revision, time }: PlacedEvent) => {
  if (isIntent(event)) return [...operations, begun(event, revision)];
  if (isLater(event)) return withLater(operations, event);
  const { operationId } = event.data;
  // From the end: an outcome mostly follows its intent soon, and there can be thousands of refunds.
  const at = operations.findLastIndex((o) => o.operationId === operationId);
  const known = operations[at];
  const isUnresolved = known !== undefined && known.ended === undefined;
  if (isNote(event)) {
    const hasFailed = operations.some((o) => o.operationId === operationId && isFailed(o));
    // Once more: a read model does not tell an operation from a refund that was made elsewhere.
    checkNote(event, { isUnresolved, confirmation: known?.confirmation, hasFailed });
    return operations.with(at, noted(known as Operation, event, time));
  }
  if (isUnresolved) return operations.with(at, ended(known, event, revision));
  // The one outcome without an unresolved intent is a sale's capture, which belongs to the create.
  const [create] = operations;
  if (create?.operationId !== operationId) throw withoutIntent(event);
  return operations.with(0, ended(create, event, revision));
};

const KINDS: Record<IntentEvent['type'], OperationKind> = {
  PaymentCreated: 'create',
  PaymentCaptureRequested: 'capture',
  PaymentVoidRequested: 'void',
  PaymentRefundRequested: 'refund',
};

const begun = ({ type, data }: IntentEvent, requestedAt: number): Operation => {
  const { operationId, amount: amountMinor, identity, provider } = data;
  const operation = { kind: KINDS[type], operationId, amountMinor, identity, requestedAt };
  return provider === undefined ? operation : { ...operation, provider };
};

const ended = (operation: Operation, event: OutcomeEvent, revision: number): Operation => {
  const { resolutionRequest: _, ...known } = operation;
  const outcome = 'outcome' in event.data ? event.data.outcome : 'APPROVED';
  // The second outcome of a sale finds what the first one has left.
  const confirmation = known.confirmation ?? confirmationAfter(event);
  return {
    ...known,
    ...changesBy(event),
    ended: { outcome, revision },
    ...(confirmation && { confirmation }),
  };
};

const changesBy = ({ type, data }: OutcomeEvent): Partial<Operation> => {
  switch (type) {
    case 'PaymentAuthorized':
      return data.providerReference === undefined ? {} : { reference: data.providerReference };
    case 'PaymentRefunded':
    case 'PaymentRefundDeclined':
      // The outcome says what was refunded, so that a refund which bounces takes just that back (L5).
      return { kind: 'refund', amountMinor: data.amount };
    default:
      return {};
  }
};

const isFailed = ({ failedLater, ended }: Operation): boolean =>
  failedLater ?? (ended !== undefined && ended.outcome !== 'APPROVED');

const noted = (operation: Operation, { type, data }: NoteEvent, time: string): Operation => {
  const { confirmation, resolutionRequest: _, ...known } = operation;
  switch (type) {
    case 'PaymentProviderOpened':
      return { ...operation, reference: data.providerReference };
    case 'PaymentAuthenticationRequested':
      return { ...operation, waitsUntil: data.expiresAt };
    case 'PaymentResolutionRequested': {
      const { outcome, evidence, withoutFence, requestedBy } = data;
      const request = { outcome, evidence, requestedBy, requestedAt: time };
      return {
        ...known,
        ...(confirmation && { confirmation }),
        resolutionRequest: { ...request, ...(withoutFence && { withoutFence }) },
      };
    }
    case 'PaymentOutcomeConfirmed': {
      const isByHand = confirmation === 'CONTRADICTED' && data.resolution !== undefined;
      return { ...known, ...(isByHand && { contradictionEnded: true }) };
    }
    case 'PaymentOutcomeContradicted':
      return { ...known, confirmation: 'CONTRADICTED' };
  }
};

const marking =
  (operationId: string, mark: 'failedLater' | 'noticedExpiring') =>
  <T extends { operationId: string }>(one: T): T =>
    one.operationId === operationId ? { ...one, [mark]: true } : one;

const withLater = (operations: Operation[], { type, data }: LaterEvent): Operation[] => {
  if (type === 'PaymentAuthorizationExpiring')
    return operations.map(marking(data.operationId, 'noticedExpiring'));
  return type === 'PaymentRefundFailed'
    ? operations.map(marking(data.operationId, 'failedLater'))
    : operations;
};

const observedAfter = (
  observed: ObservedRefund[] | undefined,
  { type, data }: PlacedEvent['event'],
): ObservedRefund[] | undefined => {
  if (type === 'PaymentRefundFailed')
    return observed?.map(marking(data.operationId, 'failedLater'));
  if (type !== 'PaymentRefundObserved') return observed;
  const { operationId, refundId, amount: amountMinor } = data;
  return [...(observed ?? []), { operationId, refundId, amountMinor }];
};
