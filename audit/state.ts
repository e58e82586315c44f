/** The payment as it was at a revision or a time, and how it differs from the payment now. */
import type { z } from 'zod';
import { describeBreak } from '../shared/event-store/chain.ts';
import type { RecordedPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { PersonalGroup } from '../shared/payment/fields.ts';
import { foldReadModel } from '../shared/payment/fold.ts';
import { type OpenedText, responseOf } from '../shared/payment/response.ts';
import type { PaymentReadModel } from '../shared/payment/state.ts';
import type { AuditBreak, AuditDifference, AuditState } from './contract.ts';
import { auditEvent, type Texts } from './history.ts';
import type { StateParameters } from './parameters.ts';

type Requested = z.output<typeof StateParameters>;

const isBranch = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

const stepTo = (path: string, name: string, isList: boolean): string => {
  if (isList) return `${path}[${name}]`;
  return path === '' ? name : `${path}.${name}`;
};

type Difference = z.infer<typeof AuditDifference>;

const differencesOf = (was: unknown, now: unknown, path = ''): Difference[] => {
  if (was === now) return [];
  if (isBranch(was) && isBranch(now) && Array.isArray(was) === Array.isArray(now)) {
    const names = new Set([...Object.keys(now), ...Object.keys(was)]);
    return [...names].flatMap((name) =>
      differencesOf(was[name], now[name], stepTo(path, name, Array.isArray(now))),
    );
  }
  return [{ path, was, now }];
};

/** The requested revision, or the last one at the requested time; -1 where there was none yet. */
const revisionAt = (events: readonly RecordedPaymentEvent[], { revision, at }: Requested) => {
  if (revision !== undefined) return revision;
  const last = events.length - 1;
  return at === undefined ? last : events.findLastIndex(({ time }) => time <= at);
};

export type State = Omit<z.infer<typeof AuditState>, 'event'> & {
  event: ReturnType<typeof auditEvent>;
};

export type NoState = { none: 'not yet' | 'beyond' | 'broken'; detail: string };

/** The events up to the requested moment. `broken` is behind `events`, and nothing is shown after it. */
export const eventsUntil = (
  events: readonly RecordedPaymentEvent[],
  requested: Requested,
  broken: AuditBreak | undefined,
): readonly RecordedPaymentEvent[] | NoState => {
  const last = events.length - 1;
  const revision = revisionAt(events, requested);
  // By time, the last event before the break may not be the last of that time.
  const isLast = revision === last && requested.revision === undefined;
  if (broken !== undefined && (revision > last || isLast))
    return { none: 'broken', detail: describeBreak(broken) };
  if (revision > last) return { none: 'beyond', detail: `revision must be at most ${last}` };
  if (revision < 0)
    return { none: 'not yet', detail: 'the payment did not exist yet at that time' };
  return events.slice(0, revision + 1);
};

/** `events`: the stream, or what is before `broken`. Throws Error where it cannot be folded. */
export const stateOf = (
  events: readonly RecordedPaymentEvent[],
  requested: Requested,
  texts: Texts,
  broken?: AuditBreak,
): State | NoState => {
  const until = eventsUntil(events, requested, broken);
  if ('none' in until) return until;
  const event = until.at(-1) as RecordedPaymentEvent;
  const { revision } = event;
  const was = foldReadModel(until) as PaymentReadModel;
  const now = foldReadModel(events) as PaymentReadModel;
  const opened = texts((events[0] as RecordedPaymentEvent).event) as OpenedText<PersonalGroup>;
  const payment = responseOf(was, opened);
  return {
    paymentId: was.paymentId,
    merchantId: was.merchantId,
    revision,
    event: auditEvent(event, was, texts),
    payment,
    now: { revision: now.revision },
    differences: differencesOf(payment, responseOf(now, opened)),
    broken,
  };
};
