/**
 * Would a command be allowed now, and if not: which events forbid it. The rules themselves answer
 * (shared/payment/decide.ts); this only names the events that they rest on.
 */
import type { RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import { type Decision, decide } from '../shared/payment/decide.ts';
import { foldReadModel } from '../shared/payment/response.ts';
import { foldState, type PaymentState } from '../shared/payment/state.ts';
import { newOperationId } from '../shared/runtime/ids.ts';
import type { AuditExplanation, AuditForbidding } from './contract.ts';

export type Question = { command: AuditExplanation['command']; amount?: number | undefined };

type Reasons = (event: RecordedPaymentEvent) => string | undefined;

const money = (amountMinor: number, currency: string): string =>
  `${(amountMinor / 100).toFixed(2)} ${currency}`;

const openIntents = (state: PaymentState): ReadonlySet<number> =>
  new Set(state.operations.filter((o) => o.ended === undefined).map((o) => o.requestedAt));

/** An intent without an outcome: the provider is asked about it before anything else happens. */
const whyOpen =
  (revisions: ReadonlySet<number>): Reasons =>
  ({ revision, event }) =>
    revisions.has(revision)
      ? `${event.type} has no outcome yet: the provider is asked about it first`
      : undefined;

/** What has ended the time in which a payment could be captured or voided. */
const whyNoLongerAuthorized: Reasons = ({ event }) => {
  switch (event.type) {
    case 'PaymentCaptured':
      return `captured ${money(event.data.amount, event.data.currency)}; a capture is final`;
    case 'PaymentVoided':
      return 'voided: the authorization was released';
    case 'PaymentFailed':
      return `failed: ${event.data.failureCode}`;
    default:
      return undefined;
  }
};

const whyOverAuthorized: Reasons = ({ event }) =>
  event.type === 'PaymentAuthorized'
    ? `authorized no more than ${money(event.data.amount, event.data.currency)}`
    : undefined;

/** What a refund is measured against: what was captured, what went back, what is on its way. */
const whyNothingLeft =
  (open: ReadonlySet<number>): Reasons =>
  ({ event, revision }) => {
    switch (event.type) {
      case 'PaymentCaptured':
        return `captured ${money(event.data.amount, event.data.currency)}, the most that can go back`;
      case 'PaymentRefunded':
        return `refunded ${money(event.data.amount, event.data.currency)} of it`;
      case 'PaymentRefundRequested':
        return open.has(revision)
          ? `holds ${money(event.data.amount, event.data.currency)} for a refund without an outcome`
          : undefined;
      default:
        return undefined;
    }
  };

const whyNeverCaptured: Reasons = (recorded) =>
  recorded.event.type === 'PaymentAuthorized'
    ? 'authorized, and nothing was captured that could go back'
    : whyNoLongerAuthorized(recorded);

const reasonsFor = (state: PaymentState, { command }: Question): Reasons => {
  if (command !== 'refund') {
    return state.status === 'AUTHORIZED' ? whyOverAuthorized : whyNoLongerAuthorized;
  }
  const hasCaptured = state.status === 'CAPTURED' || state.status === 'REFUNDED';
  return hasCaptured ? whyNothingLeft(openIntents(state)) : whyNeverCaptured;
};

const forbidding = ({ revision, position, time, event }: RecordedPaymentEvent, why: string) =>
  ({ revision, position, type: event.type, time, why }) satisfies AuditForbidding;

const forbiddenBy = (
  events: readonly RecordedPaymentEvent[],
  reasons: Reasons,
): AuditForbidding[] =>
  events.flatMap((event) => {
    const why = reasons(event);
    return why === undefined ? [] : [forbidding(event, why)];
  });

const DECLINES: Record<Question['command'], string> = {
  capture: 'PaymentCaptureDeclined',
  void: 'PaymentVoidDeclined',
  refund: 'PaymentRefundDeclined',
};

const declinesOf = (
  events: readonly RecordedPaymentEvent[],
  { command }: Question,
): AuditExplanation['declined'] =>
  events.flatMap((recorded) => {
    const { event } = recorded;
    if (event.type !== DECLINES[command] || !('failureCode' in event.data)) return [];
    const { failureCode, providerFailureCode, outcome } = event.data;
    return [
      {
        ...forbidding(
          recorded,
          outcome === 'DECLINED' ? 'the provider declined' : 'never carried out',
        ),
        failureCode,
        ...(providerFailureCode === undefined ? {} : { providerFailureCode }),
        outcome,
      },
    ];
  });

type Permission = Pick<AuditExplanation, 'allowed' | 'amount' | 'code' | 'details' | 'forbiddenBy'>;

const permissionOf = (
  events: readonly RecordedPaymentEvent[],
  state: PaymentState,
  question: Question,
  decision: Decision,
): Permission => {
  switch (decision.kind) {
    case 'events': {
      const [requested] = decision.events;
      const amount = requested === undefined ? {} : { amount: requested.data.amount };
      return { allowed: true, ...amount, details: [], forbiddenBy: [] };
    }
    case 'unresolved': {
      const details = [`the outcome of a ${decision.operation.kind} is not known yet`];
      const open = new Set([decision.operation.requestedAt]);
      const by = forbiddenBy(events, whyOpen(open));
      return { allowed: false, code: 'UNRESOLVED', details, forbiddenBy: by };
    }
    case 'refused': {
      const { code, details } = decision;
      const by = forbiddenBy(events, reasonsFor(state, question));
      return { allowed: false, code, details, forbiddenBy: by };
    }
    case 'exists':
    case 'repeated':
      throw new Error(`${question.command} without a key cannot be a repeat, and is no create`);
  }
};

/**
 * The body of `explain`; `events` is the whole stream. Throws where the stream does not fold, and
 * where it is empty.
 */
export const explain = (
  events: readonly RecordedPaymentEvent[],
  question: Question,
): AuditExplanation => {
  const state = foldState(events);
  const readModel = foldReadModel(events);
  if (state === undefined || readModel === undefined) throw new Error('a payment without events');
  const decision = decide(state, {
    kind: question.command,
    operationId: newOperationId(),
    amountMinor: question.amount,
    identity: { fingerprint: 'explain' },
  });
  return {
    paymentId: state.paymentId,
    command: question.command,
    status: readModel.response.status,
    revision: readModel.revision,
    currency: state.currency,
    ...permissionOf(events, state, question, decision),
    declined: declinesOf(events, question),
  };
};
