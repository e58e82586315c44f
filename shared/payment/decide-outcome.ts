/**
 * The rules for what came of an operation: its events, two operators who resolve it by hand, the provider's
 * word on it afterwards (gaps §6, §16, ADR-0098, ADR-0099), and what a provider says of the payment later
 * (gaps §15). Pure. No events: the state has it already, or something better.
 */
import type { ConfirmCommand, LaterCommand, RecordCommand, ResolveCommand } from './commands.ts';
import type { PaymentEvent } from './events.ts';
import { givenFailure, leftOfCapture } from './payment-response.ts';
import {
  amountOfRefund,
  createOf,
  isNeverCarriedOut,
  type Operation,
  type PaymentState,
  unresolvedOperations,
} from './state.ts';

const DECLINED_EVENTS = {
  create: 'PaymentFailed',
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
} as const;

/** One, or two for an approved sale. */
export const outcomeEvents = (
  { currency, captureNow, authorizedAmount }: PaymentState,
  { kind, operationId, amountMinor: amount, waitsUntil }: Operation,
  command: RecordCommand,
): PaymentEvent[] => {
  const { outcome, resolution } = command;
  if (outcome !== 'APPROVED') {
    // A fence ends the time of a shopper who did not come (gaps §21).
    const failureCode =
      waitsUntil === undefined ? 'PROVIDER_UNAVAILABLE' : 'AUTHENTICATION_REQUIRED';
    const failure = givenFailure(outcome === 'DECLINED' ? command : { failureCode });
    const data = { operationId, amount, currency, ...failure, outcome, resolution };
    return [{ type: DECLINED_EVENTS[kind], data }];
  }
  const { providerReference, authorizationExpiresAt } = command;
  const data = { operationId, amount, currency, providerReference, resolution };
  switch (kind) {
    case 'create':
      if (!captureNow)
        return [{ type: 'PaymentAuthorized', data: { ...data, authorizationExpiresAt } }];
      return [
        { type: 'PaymentAuthorized', data },
        { type: 'PaymentCaptured', data },
      ];
    case 'capture': {
      const releasedAmount = authorizedAmount - amount || undefined;
      return [{ type: 'PaymentCaptured', data: { ...data, releasedAmount } }];
    }
    case 'void':
      return [{ type: 'PaymentVoided', data }];
    case 'refund':
      return [{ type: 'PaymentRefunded', data }];
  }
};

export const APPROVAL_MS_MAX = 86_400_000;

/** Two persons are told apart by the `sub` of a token without outer spaces and invisible characters. */
export const personOf = (subject: string): string =>
  subject
    .replace(/\p{Cf}/gu, '')
    .normalize('NFC')
    .trim();

/** Records an operator's request, then the outcome as soon as another operator requests the same. */
export const resolveByHand = (
  state: PaymentState,
  operation: Operation,
  { outcome, evidence, withoutFence, actor, atMs }: ResolveCommand,
): PaymentEvent[] => {
  const { operationId, amountMinor: amount, ended, confirmation, resolutionRequest } = operation;
  if (ended !== undefined && confirmation !== 'CONTRADICTED') return [];
  const about = { operationId, amount, currency: state.currency, outcome };
  const isRequested =
    resolutionRequest?.outcome === outcome &&
    (resolutionRequest.withoutFence ?? false) === withoutFence &&
    atMs - Date.parse(resolutionRequest.requestedAt) <= APPROVAL_MS_MAX;
  const fence = withoutFence || undefined;
  if (!isRequested) {
    const data = { ...about, evidence, withoutFence: fence, requestedBy: actor };
    return [{ type: 'PaymentResolutionRequested', data }];
  }
  const { requestedBy, evidence: requestEvidence } = resolutionRequest;
  if (personOf(requestedBy) === personOf(actor)) return [];
  const resolution = { evidence, requestedBy, requestEvidence, withoutFence: fence };
  if (ended !== undefined)
    return [{ type: 'PaymentOutcomeConfirmed', data: { ...about, resolution } }];
  // An operator knows no reason of a decline.
  const details =
    outcome === 'APPROVED' ? { outcome } : { outcome, failureCode: 'UNKNOWN_DECLINE' as const };
  return outcomeEvents(state, operation, { kind: 'record', operationId, ...details, resolution });
};

/** What the provider says of an operation that two operators resolved. */
export const confirmOutcome = (
  { currency }: PaymentState,
  operation: Operation,
  command: ConfirmCommand,
): PaymentEvent[] => {
  const { operationId, amountMinor: amount, ended, confirmation, contradictionEnded } = operation;
  if (ended === undefined || contradictionEnded) return [];
  // The provider gave this outcome itself.
  if (confirmation === undefined && !isNeverCarriedOut(operation)) return [];
  // NOT_SENT is a call's outcome, never the response to a question.
  const outcome = command.outcome === 'NOT_SENT' ? 'FENCED' : command.outcome;
  const providerReference = 'providerReference' in command ? command.providerReference : undefined;
  const data = { operationId, amount, currency, outcome, providerReference };
  // A decline and a fence both say that no money moved.
  if ((ended.outcome === 'APPROVED') === (outcome === 'APPROVED'))
    return confirmation === undefined ? [] : [{ type: 'PaymentOutcomeConfirmed', data }];
  return confirmation === 'CONTRADICTED' ? [] : [{ type: 'PaymentOutcomeContradicted', data }];
};

/** An operation without an outcome may have come before what is said: its outcome decides. */
const isHeld = (state: PaymentState): boolean =>
  state.status === 'AUTHORIZED' && unresolvedOperations(state).length === 0;

const hasCaptured = ({ status }: PaymentState): boolean =>
  status === 'CAPTURED' || status === 'REFUNDED';

/** None where the result is recorded already, or cannot be recorded now. */
export const decideLater = (
  state: PaymentState,
  { operationId, result }: LaterCommand,
): PaymentEvent[] => {
  const { currency, authorizedAmount } = state;
  const create = createOf(state);
  const authorization = { operationId: create.operationId, amount: authorizedAmount, currency };
  switch (result.kind) {
    case 'AUTHORIZATION_EXPIRING': {
      const { authorizationExpiresAt: expiresAt } = state;
      if (!isHeld(state) || create.noticedExpiring || expiresAt === undefined) return [];
      return [{ type: 'PaymentAuthorizationExpiring', data: { ...authorization, expiresAt } }];
    }
    case 'AUTHORIZATION_EXPIRED':
      return isHeld(state) ? [{ type: 'PaymentAuthorizationExpired', data: authorization }] : [];
    case 'CAPTURE_OBSERVED': {
      const { reference: providerReference, amount } = result;
      // A capture of more than was authorized cannot be: reconcile shows it.
      if (!isHeld(state) || amount > authorizedAmount) return [];
      const releasedAmount = authorizedAmount - amount || undefined;
      const data = { operationId, amount, currency, providerReference, releasedAmount };
      return [{ type: 'PaymentCaptureObserved', data }];
    }
    case 'VOID_OBSERVED': {
      if (!isHeld(state)) return [];
      const data = { ...authorization, operationId, providerReference: result.reference };
      return [{ type: 'PaymentVoidObserved', data }];
    }
    case 'REFUND_FAILED': {
      const amount = amountOfRefund(state, result.operationId);
      if (amount === undefined) return [];
      const failed = { operationId: result.operationId, amount, currency };
      return [{ type: 'PaymentRefundFailed', data: { ...failed, ...givenFailure(result) } }];
    }
    case 'REFUND_OBSERVED': {
      const { refundId, amount } = result;
      const isKnown = state.observedRefunds.some((o) => o.refundId === refundId);
      // A refund of more than is left cannot be: reconcile shows it.
      const isTooMuch = amount > leftOfCapture(state, state.readModel.unresolved);
      if (!hasCaptured(state) || isKnown || isTooMuch) return [];
      return [{ type: 'PaymentRefundObserved', data: { operationId, amount, currency, refundId } }];
    }
    case 'DISPUTE':
      return disputed(state, result);
  }
};

const disputed = (
  state: PaymentState,
  { disputeId, amount, reason, status }: Extract<LaterCommand['result'], { kind: 'DISPUTE' }>,
): PaymentEvent[] => {
  if (!hasCaptured(state)) return [];
  const { operationId } = createOf(state);
  const known = state.disputes?.find(({ id }) => id === disputeId);
  const about = { operationId, amount: known?.amount ?? amount, currency: state.currency };
  const opened: PaymentEvent = { type: 'PaymentDisputed', data: { ...about, disputeId, reason } };
  const events = known === undefined ? [opened] : [];
  // A closed dispute stays closed, because an older notice may come late; but an appeal may be won.
  const isOver = known?.status === 'WON' || (known?.status === 'LOST' && status === 'LOST');
  if (status === 'OPEN' || isOver) return events;
  return [...events, { type: 'PaymentDisputeClosed', data: { ...about, disputeId, status } }];
};
