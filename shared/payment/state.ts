/** The state that the rules decide on, its fold, and the questions that they ask of it. */

import type { EventData, PlacedEvent } from './events.ts';
import type { RequestIdentity } from './fields.ts';
import type { PaymentReadModel, PaymentResponse } from './payment-response.ts';
import { noteMisfit, project, requireFit, withoutIntent } from './response.ts';
import {
  type Confirmation,
  type IntentEvent,
  isIntent,
  isLater,
  isNote,
  type NoteEvent,
  type OutcomeEvent,
} from './transitions.ts';

/** `state` is undefined at first. Throws Error where the event cannot follow: the stream is damaged. */
export const evolve = (state: PaymentState | undefined, next: PlacedEvent): PaymentState => {
  const { event } = next;
  const readModel = project(state?.readModel, next);
  if (event.type === 'PaymentRefundFailed' && state !== undefined)
    requireFit(event, amountOfRefund(state, event.data.operationId) === event.data.amount);
  return {
    ...readModel.response,
    merchantId: readModel.merchantId,
    readModel,
    operations: operationsAfter(state?.operations ?? [], next, readModel),
    observedRefunds: observedAfter(state?.observedRefunds ?? [], event),
  };
};

/** Undefined for an empty stream. Throws as `evolve` does. */
export const foldState = (events: Iterable<PlacedEvent>): PaymentState | undefined => {
  let state: PaymentState | undefined;
  for (const event of events) state = evolve(state, event);
  return state;
};

/** The operations after an event that fits the read model. */
const operationsAfter = (
  operations: Operation[],
  { event, revision, time }: PlacedEvent,
  { unresolved }: PaymentReadModel,
): Operation[] => {
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
    if (known === undefined) throw noteMisfit(event);
    return operations.with(at, { ...noted(known, event, time), confirmation });
  }
  // The one outcome without an unresolved intent is a sale's capture, which belongs to the create.
  if (known === undefined || (known.ended !== undefined && at > 0)) throw withoutIntent(event);
  return operations.with(at, { ...ended(known, event, revision), confirmation });
};

const KINDS: Record<IntentEvent['type'], OperationKind> = {
  PaymentCreated: 'create',
  PaymentCaptureRequested: 'capture',
  PaymentVoidRequested: 'void',
  PaymentRefundRequested: 'refund',
};

const begun = ({ type, data }: IntentEvent, requestedAt: number): Operation => {
  const { operationId, amount: amountMinor, identity, provider } = data;
  const operation = { operationId, amountMinor, identity, requestedAt, provider };
  const mayAsk = 'authentication' in data && data.authentication === true;
  return { kind: KINDS[type], ...operation, ...(mayAsk && { authentication: true }) };
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
  amountMinor: data.amount,
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
      const isByHand = operation.confirmation === 'CONTRADICTED' && data.resolution !== undefined;
      const confirmed = { ...operation, resolutionRequest: undefined };
      return isByHand ? { ...confirmed, contradictionEnded: true } : confirmed;
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
  const { operationId, refundId, amount: amountMinor } = data;
  return [...observed, { operationId, refundId, amountMinor }];
};

/** A sale is a create. */
export type OperationKind = 'create' | 'capture' | 'void' | 'refund';

/** One operation at the provider: it has its outcome where `ended` is present. */
export type Operation = {
  kind: OperationKind;
  operationId: string;
  /** From 1. A void carries the authorized amount. */
  amountMinor: number;
  identity: RequestIdentity;
  /** The revision of the intent. */
  requestedAt: number;
  /** The provider that it was sent to; absent where the intent is older than the names. */
  provider?: string | undefined;
  /** The provider's name for it: of a create, as soon as the provider has opened or approved it. */
  reference?: string;
  /** The provider may ask for the shopper, or has asked (gaps §21). */
  authentication?: true;
  /** The provider waits, or waited, for the shopper until then: a time, UTC. */
  waitsUntil?: string;
  /** `revision` is that of the outcome's last event: the response is the fold up to it. */
  ended?: { outcome: 'APPROVED' | EventData<'PaymentFailed'>['outcome']; revision: number };
  /** A refund that was approved, and bounced later. */
  failedLater?: true;
  /** A create whose merchant was told that its authorization ends soon (gaps §24). */
  noticedExpiring?: true;
  /** Until it is confirmed: resolved by hand, or recorded as never sent and yet carried out (ADR-0099). */
  confirmation?: Confirmation | undefined;
  /** Two operators have ended a contradiction: it is not noted again. */
  contradictionEnded?: true;
  resolutionRequest?: ResolutionRequest | undefined;
};

/** One operator's request to resolve by hand, which another one has not approved. */
export type ResolutionRequest = Pick<
  EventData<'PaymentResolutionRequested'>,
  'outcome' | 'evidence' | 'withoutFence' | 'requestedBy'
> & { requestedAt: string };

/** Made elsewhere; `refundId` is the provider's. */
type ObservedRefund = {
  operationId: string;
  refundId: string;
  amountMinor: number;
  failedLater?: true;
};

/**
 * The payment as a response shows it, and every operation that was ever begun on it, so that a repeat is
 * recognised and an unresolved operation is found. A payment that does not exist has no state.
 */
export type PaymentState = PaymentResponse & {
  merchantId: string;
  operations: Operation[];
  observedRefunds: ObservedRefund[];
  readModel: PaymentReadModel;
};

export const unresolvedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.ended === undefined);

/** Not confirmed, or contradicted (ADR-0099); oldest first. */
export const unconfirmedOperations = (state: PaymentState | undefined): Operation[] =>
  state === undefined ? [] : state.operations.filter((o) => o.confirmation !== undefined);

/** The refunds that count as given back: approved, or made elsewhere, and not bounced. */
export const refundsOf = ({ operations, observedRefunds }: PaymentState) =>
  [
    ...operations.filter((o) => o.kind === 'refund' && o.ended?.outcome === 'APPROVED'),
    ...observedRefunds,
  ].filter((o) => !o.failedLater);

/** Undefined for any other id. By the whole operation id: transactions show a part of it alone. */
export const amountOfRefund = (state: PaymentState, operationId: string): number | undefined =>
  refundsOf(state).find((o) => o.operationId === operationId)?.amountMinor;

/** Recorded as never carried out: an approval contradicts that, whatever the payment waited for (gaps §16, §21). */
export const isNeverCarriedOut = ({ ended }: Pick<Operation, 'ended'>): boolean =>
  ended?.outcome === 'NOT_SENT' || ended?.outcome === 'FENCED';

/**
 * Its idempotency key is free again (gaps §7, §8). A fence after the shopper's time is a decline, and frees
 * nothing (gaps §21).
 */
export const isFree = (operation: Operation): boolean =>
  operation.waitsUntil === undefined && isNeverCarriedOut(operation);

/** A request's identity under the current secret, and under the older one while it changes (ADR-0105). */
export type Recognised = {
  identity: RequestIdentity;
  previousIdentity?: RequestIdentity | undefined;
};

/** False for a request without a key. */
export const isUnderKeyOf = (
  { identity: { keyHash } }: Pick<Operation, 'identity'>,
  { identity, previousIdentity }: Recognised,
): boolean =>
  keyHash !== undefined && (keyHash === identity.keyHash || keyHash === previousIdentity?.keyHash);

export const isOfSameRequest = (
  { identity: { fingerprint } }: Pick<Operation, 'identity'>,
  { identity, previousIdentity }: Recognised,
): boolean => fingerprint === identity.fingerprint || fingerprint === previousIdentity?.fingerprint;

/** The latest operation under the request's key; undefined for none, and for no key. */
export const operationUnder = (state: PaymentState, request: Recognised): Operation | undefined =>
  state.operations.findLast((o) => isUnderKeyOf(o, request));

/** A capture, void or refund names its authorization to the provider by the ids of the create. */
export const authorizationOf = (
  state: PaymentState,
): { authorizationId: string; authorizationReference?: string | undefined } => {
  const { operationId, reference } = createOf(state);
  return { authorizationId: operationId, authorizationReference: reference };
};

/** No other provider can change the payment (ADR-0247). Undefined where no event names one. */
export const providerOf = (state: PaymentState): string | undefined =>
  createOf(state).provider ??
  // A change that an older payment's provider carried out; a declined one may have gone astray.
  state.operations.find(({ provider, ended }) => provider && ended?.outcome === 'APPROVED')
    ?.provider;

export const isOtherProvider = (
  provider: string | undefined,
  providers: readonly string[],
): provider is string => provider !== undefined && !providers.includes(provider);

/** Every payment begins with it. Throws Error where there is none. */
export const createOf = ({ operations, paymentId }: PaymentState): Operation => {
  const create = operations[0];
  if (create === undefined) throw new Error(`payment ${paymentId} has no create`);
  return create;
};
