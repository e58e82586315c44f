/** Names the events behind a decision of the rules (shared/payment/decide.ts). */
import { describeBreak } from '../shared/event-store/chain.ts';
import type { RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import { type Decision, decide, hasReachedCeiling } from '../shared/payment/decide.ts';
import type { EventData, PaymentEventType } from '../shared/payment/events.ts';
import { foldState } from '../shared/payment/fold.ts';
import {
  isOtherProvider,
  type Operation,
  type PaymentState,
  unresolvedOperations,
} from '../shared/payment/state.ts';
import { minor } from '../shared/payment/transitions.ts';
import { newOperationId } from '../shared/runtime/ids.ts';
import type { AuditBreak, AuditExplanation } from './contract.ts';
import { byHand } from './event-words.ts';

/** `amount` in minor units; undefined is the whole amount. */
type ExplainedCommand = {
  command: AuditExplanation['command'];
  amount?: number | undefined;
  operationsMax: number;
  providers: readonly string[];
};

type ReasonOf = (event: RecordedPaymentEvent) => string | undefined;

type Amount = { amount: number; currency: string };

const amountText = ({ amount, currency }: Amount): string =>
  `${(amount / 100).toFixed(2)} ${currency}`;

const whyUnresolved =
  ({ requestedAt, provider }: Operation, { providers }: ExplainedCommand): ReasonOf =>
  ({ revision, event }) => {
    if (revision !== requestedAt) return undefined;
    const isElsewhere = providers.length > 0 && isOtherProvider(provider, providers);
    const next = isElsewhere
      ? `it was sent to ${provider}, and its outcome is not asked for while the provider that is set is ${providers[0]}`
      : 'the provider is asked about it first';
    return `${event.type} has no outcome yet: ${next}`;
  };

/** The create, or the change by which the log knows where an older payment was made. */
const whyElsewhere =
  (provider: string, { providers }: ExplainedCommand): ReasonOf =>
  ({ event }) =>
    'provider' in event.data && event.data.provider === provider
      ? `${event.type} was sent to ${provider}; the provider that is set is ${providers[0]}`
      : undefined;

/** What an event of each type says about a refusal; others say nothing. */
type Words = { [Type in PaymentEventType]?: (data: EventData<Type>) => string };

const wordsOf =
  (words: Words): ReasonOf =>
  ({ event }) =>
    (words[event.type] as ((data: unknown) => string) | undefined)?.(event.data);

const NO_LONGER_AUTHORIZED: Words = {
  PaymentCaptured: (data) => `captured ${amountText(data)}; a capture is final`,
  PaymentVoided: () => 'voided: the authorization was released',
  PaymentAuthorizationExpired: () => 'the authorization ran out at the provider',
  PaymentCaptureObserved: (data) => `captured ${amountText(data)} elsewhere; a capture is final`,
  PaymentVoidObserved: () => 'voided elsewhere: the authorization was released',
  PaymentFailed: ({ failureCode }) => `failed: ${failureCode}`,
};

const OVER_AUTHORIZED: Words = {
  PaymentAuthorized: (data) => `authorized no more than ${amountText(data)}`,
};

const NEVER_CAPTURED: Words = {
  ...NO_LONGER_AUTHORIZED,
  PaymentAuthorized: () => 'authorized, and nothing was captured that could go back',
};

const whyDisputed = ({ disputes = [] }: PaymentState, disputed: EventData<'PaymentDisputed'>) => {
  const { disputeId, reason } = disputed;
  const isOpen = disputes.some(({ id, status }) => id === disputeId && status === 'OPEN');
  const until = isOpen ? '; while it is open nothing is refunded' : '';
  return `disputed: ${amountText(disputed)}, ${reason}${until}`;
};

const whyNothingLeft = (state: PaymentState): ReasonOf => {
  const captured = (data: Amount): string =>
    `captured ${amountText(data)}, the most that can go back`;
  const ended = wordsOf({
    PaymentCaptured: captured,
    PaymentCaptureObserved: captured,
    PaymentRefunded: (data) => `refunded ${amountText(data)} of it`,
    PaymentRefundObserved: (data) => `refunded ${amountText(data)} of it elsewhere`,
    PaymentRefundFailed: (data) => `${amountText(data)} of a refund came back`,
    PaymentDisputed: (data) => whyDisputed(state, data),
    PaymentDisputeClosed: ({ status }) => `the dispute was ${status === 'WON' ? 'won' : 'lost'}`,
  });
  const waiting = wordsOf({
    PaymentRefundRequested: (data) => `holds ${amountText(data)} for a refund without an outcome`,
  });
  const open = unresolvedOperations(state).map(({ requestedAt }) => requestedAt);
  return (event) => ended(event) ?? (open.includes(event.revision) ? waiting(event) : undefined);
};

const whyAtCeiling =
  ({ operations }: PaymentState): ReasonOf =>
  ({ revision, event }) =>
    operations.at(-1)?.requestedAt === revision
      ? `${event.type} began operation ${operations.length}, the last that the payment may have`
      : undefined;

const reasonFor = (state: PaymentState, request: ExplainedCommand): ReasonOf => {
  const { command } = request;
  if (hasReachedCeiling(state, request)) return whyAtCeiling(state);
  if (command !== 'refund')
    return wordsOf(state.status === 'AUTHORIZED' ? OVER_AUTHORIZED : NO_LONGER_AUTHORIZED);
  const hasCaptured = state.status === 'CAPTURED' || state.status === 'REFUNDED';
  return hasCaptured ? whyNothingLeft(state) : wordsOf(NEVER_CAPTURED);
};

const forbidding = ({ revision, position, time, event }: RecordedPaymentEvent, why: string) => ({
  revision,
  position,
  type: event.type,
  time,
  why,
});

const forbiddenBy = (events: readonly RecordedPaymentEvent[], reasonOf: ReasonOf) =>
  events.flatMap((event) => {
    const why = reasonOf(event);
    return why === undefined ? [] : [forbidding(event, why)];
  });

const DECLINES: Record<ExplainedCommand['command'], string> = {
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
};

type Declined = Pick<EventData<'PaymentCaptureDeclined'>, 'outcome' | 'resolution'>;

const whyDeclined = ({ outcome, resolution }: Declined): string => {
  if (outcome !== 'DECLINED') return 'never carried out';
  return resolution === undefined ? 'the provider declined' : byHand(resolution);
};

const declinesOf = (events: readonly RecordedPaymentEvent[], { command }: ExplainedCommand) =>
  events.flatMap((recorded) => {
    const { type, data } = recorded.event;
    if (type !== DECLINES[command] || !('outcome' in data && 'failureCode' in data)) return [];
    const { failureCode, providerFailureCode, outcome } = data;
    const own = providerFailureCode === undefined ? {} : { providerFailureCode };
    return [{ ...forbidding(recorded, whyDeclined(data)), failureCode, ...own, outcome }];
  });

const permissionOf = (
  events: readonly RecordedPaymentEvent[],
  state: PaymentState,
  request: ExplainedCommand,
  decision: Decision,
): Pick<AuditExplanation, 'allowed' | 'amount' | 'code' | 'details' | 'forbiddenBy'> => {
  switch (decision.kind) {
    case 'events': {
      const { data } = decision.events[0] ?? {};
      const amount = data !== undefined && 'amount' in data ? { amount: data.amount } : {};
      return { allowed: true, ...amount, details: [], forbiddenBy: [] };
    }
    case 'unresolved': {
      const details = [`the outcome of a ${decision.operation.kind} is not known yet`];
      const by = forbiddenBy(events, whyUnresolved(decision.operation, request));
      return { allowed: false, code: 'UNRESOLVED', details, forbiddenBy: by };
    }
    case 'refused': {
      const { code, details } = decision;
      const by = forbiddenBy(events, reasonFor(state, request));
      return { allowed: false, code, details, forbiddenBy: by };
    }
    case 'other provider': {
      const details = ['the payment was made at another provider than the one in use now'];
      const by = forbiddenBy(events, whyElsewhere(decision.provider, request));
      return { allowed: false, code: 'PROVIDER_UNAVAILABLE', details, forbiddenBy: by.slice(0, 1) };
    }
    case 'exists':
    case 'repeated':
      throw new Error(`${request.command} without a key cannot be a repeat, and is no create`);
  }
};

/** The service rejects every command on a stream that does not verify (gaps §9). */
export const explainBroken = (
  paymentId: string,
  { command }: Pick<ExplainedCommand, 'command'>,
  broken: AuditBreak,
): AuditExplanation => ({
  paymentId,
  command,
  allowed: false,
  code: 'SERVICE_UNAVAILABLE',
  details: [`the payment's events do not verify at ${describeBreak(broken)}`],
  forbiddenBy: [],
  declined: [],
  broken,
});

/** `events` is the whole stream. Throws Error where it is empty or cannot be folded. */
export const explain = (
  events: readonly RecordedPaymentEvent[],
  request: ExplainedCommand,
): AuditExplanation => {
  const state = foldState(events);
  if (state === undefined) throw new Error('a payment without events');
  const decision = decide(state, {
    kind: request.command,
    operationId: newOperationId(),
    amount: request.amount === undefined ? undefined : minor(request.amount),
    operationsMax: request.operationsMax,
    providers: request.providers,
    identity: { fingerprint: 'explain' },
  });
  return {
    paymentId: state.paymentId,
    command: request.command,
    status: state.status,
    revision: state.revision,
    currency: state.currency,
    ...permissionOf(events, state, request, decision),
    declined: declinesOf(events, request),
  };
};
