/**
 * The rules for two operators who resolve an operation by hand, and for the provider's word on it
 * afterwards (gaps §16, ADR-0098, ADR-0099). Pure. No events: the state has it already, or something
 * better.
 */
import type { ConfirmCommand, ResolutionCommand, ResolveCommand } from './commands.ts';
import type { FinalOutcome } from './outcome.ts';
import { outcomeEvents } from './outcome-events.ts';
import type { EventData, PaymentEvent, Resolution } from './payment-events.ts';
import { isFree, type Operation, type PaymentState, type ResolutionRequest } from './state.ts';

export const APPROVAL_MS_MAX = 86_400_000;

/** Two persons are told apart by the `sub` of a token without outer spaces and invisible characters. */
export const personOf = (subject: string): string =>
  subject
    .replace(/\p{Cf}/gu, '')
    .normalize('NFC')
    .trim();

export const decideResolution = (
  state: PaymentState,
  operation: Operation,
  command: ResolutionCommand,
): PaymentEvent[] =>
  command.kind === 'resolve'
    ? resolve(state, operation, command)
    : confirm(state, operation, command);

const dataOf = ({ currency }: PaymentState, { operationId, amountMinor }: Operation) => ({
  operationId,
  amount: amountMinor,
  currency,
});

const resolve = (
  state: PaymentState,
  operation: Operation,
  command: ResolveCommand,
): PaymentEvent[] => {
  const { ended, confirmation, resolutionRequest: request } = operation;
  if (ended !== undefined && confirmation !== 'CONTRADICTED') return [];
  if (request === undefined || !isEqual(request, command) || !isFresh(request, command))
    return [requested(state, operation, command)];
  if (personOf(request.requestedBy) === personOf(command.actor)) return [];
  const resolution = resolutionOf(request, command);
  if (ended !== undefined) return [confirmed(state, operation, command.outcome, { resolution })];
  const { operationId, outcome } = command;
  // An operator knows no reason of a decline.
  const details =
    outcome === 'APPROVED' ? { outcome } : { outcome, failureCode: 'UNKNOWN_DECLINE' as const };
  return outcomeEvents(state, operation, { kind: 'record', operationId, ...details, resolution });
};

const isEqual = (request: ResolutionRequest, command: ResolveCommand): boolean =>
  request.outcome === command.outcome && (request.withoutFence ?? false) === command.withoutFence;

const isFresh = (request: ResolutionRequest, { atMs }: ResolveCommand): boolean =>
  atMs - Date.parse(request.requestedAt) <= APPROVAL_MS_MAX;

const requested = (
  state: PaymentState,
  operation: Operation,
  { outcome, evidence, withoutFence, actor: requestedBy }: ResolveCommand,
): PaymentEvent => ({
  type: 'PaymentResolutionRequested',
  data: {
    ...dataOf(state, operation),
    outcome,
    evidence,
    ...(withoutFence && { withoutFence }),
    requestedBy,
  },
});

const resolutionOf = (
  { requestedBy, evidence: requestEvidence, withoutFence }: ResolutionRequest,
  { evidence }: ResolveCommand,
): Resolution => ({
  evidence,
  requestedBy,
  requestEvidence,
  ...(withoutFence && { withoutFence }),
});

const confirmed = (
  state: PaymentState,
  operation: Operation,
  outcome: EventData<'PaymentOutcomeConfirmed'>['outcome'],
  more: Pick<EventData<'PaymentOutcomeConfirmed'>, 'providerReference' | 'resolution'>,
): PaymentEvent => ({
  type: 'PaymentOutcomeConfirmed',
  data: { ...dataOf(state, operation), outcome, ...more },
});

/** A decline and a fence both say that no money moved. */
const agree = (one: FinalOutcome, other: FinalOutcome): boolean =>
  (one === 'APPROVED') === (other === 'APPROVED');

const confirm = (
  state: PaymentState,
  operation: Operation,
  command: ConfirmCommand,
): PaymentEvent[] => {
  const { ended, confirmation, contradictionEnded } = operation;
  if (ended === undefined || contradictionEnded) return [];
  // The provider gave this outcome itself.
  if (confirmation === undefined && !isFree(operation)) return [];
  // NOT_SENT is a call's outcome, never the response to a question.
  const outcome = command.outcome === 'NOT_SENT' ? 'FENCED' : command.outcome;
  const reference = 'providerReference' in command ? command.providerReference : undefined;
  const more = reference === undefined ? {} : { providerReference: reference };
  const agreed = confirmation === undefined ? [] : [confirmed(state, operation, outcome, more)];
  if (agree(ended.outcome, outcome)) return agreed;
  if (confirmation === 'CONTRADICTED') return [];
  return [
    {
      type: 'PaymentOutcomeContradicted',
      data: { ...dataOf(state, operation), outcome, ...more },
    },
  ];
};
