/** Applies the events of a merchant's endpoints to one delivery, once each (`followedRevision`). Pure. */
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import {
  type Endpoint,
  isOfWebhooks,
  type RecordedWebhookEvent,
  TESTS,
} from '../endpoints/endpoints.ts';
import { DISABLED_TYPE, isWanted } from '../message.ts';
import type { Delivery } from './delivery.ts';
import { type DeliveryRow, NO_FAILURES, type Single } from './delivery-row.ts';

const withSingle = (
  delivery: Delivery,
  { id, time, revision }: RecordedEvent,
  single: Pick<Single, 'kind'> & Partial<Single>,
  nowMs: number,
): Delivery => {
  const added = { id, revision, n: 0, since: Date.parse(time), nextAt: nowMs, ...single };
  return { ...delivery, row: { ...delivery.row, singles: [...delivery.row.singles, added] } };
};

/** Later tests replace the oldest that wait, so that after the loss of a row not all are sent again. */
const withTest = (delivery: Delivery, recorded: RecordedEvent, nowMs: number): Delivery => {
  const { row, busy } = delivery;
  const waiting = row.singles.filter(({ id, kind }) => kind === 'test' && !busy.has(id));
  const dropped = waiting.slice(0, Math.max(0, waiting.length + 1 - TESTS.max));
  const singles = row.singles.filter((single) => !dropped.includes(single));
  const others = { ...delivery, row: { ...row, singles } };
  return withSingle(others, recorded, { kind: 'test' }, nowMs);
};

/** The log is read on from a place; what was read of it before counts no more. */
const movedTo = (delivery: Delivery, position: string | null, change: Partial<DeliveryRow>) => ({
  ...delivery,
  ahead: [],
  readTo: { position, hash: null },
  row: { ...delivery.row, ...change, checkpoint: position, hash: null },
});

/** Reads the log again from where the endpoint began, or from its start. */
const rewound = (delivery: Delivery, endpoint: Endpoint, sinceMs: number): Delivery => {
  const { rescan, checkpoint } = delivery.row;
  const start = sinceMs < Date.parse(endpoint.createdAt) ? null : endpoint.after;
  const upTo = rescan?.upTo ?? checkpoint;
  // Events that wait after the checkpoint are read again, and none is left out.
  const before = Math.min(sinceMs, rescan?.before ?? sinceMs);
  return movedTo(delivery, start, { rescan: upTo === null ? null : { upTo, before } });
};

const enabled = (delivery: Delivery, after: string | null | undefined, nowMs: number): Delivery => {
  const row = { ...delivery.row, ...NO_FAILURES, window: 1 };
  const well = { ...delivery, holdUntil: 0, row };
  if (after !== undefined)
    return movedTo(well, after, { retrying: {}, rescan: null, oldestWaiting: null });
  const entries = Object.entries(row.retrying);
  const due = entries.map(([id, entry]) => [id, { ...entry, nextAt: nowMs }]);
  return { ...well, row: { ...row, retrying: Object.fromEntries(due) } };
};

const afterEvent = (
  delivery: Delivery,
  endpoint: Endpoint,
  recorded: RecordedWebhookEvent,
  nowMs: number,
): Delivery => {
  const { event } = recorded;
  if (event.type === 'WebhookMerchantAdded') return delivery;
  const isOther = event.data.endpointId !== endpoint.endpointId;
  if (event.type === 'WebhookEndpointDisabled') {
    const isNews = isOther && isWanted(endpoint, DISABLED_TYPE);
    return isNews ? withSingle(delivery, recorded, { kind: 'notice' }, nowMs) : delivery;
  }
  if (isOther) return delivery;
  switch (event.type) {
    case 'WebhookTestRequested':
      return withTest(delivery, recorded, nowMs);
    case 'WebhookResendRequested': {
      const { since, event: one } = event.data;
      if (since !== undefined) return rewound(delivery, endpoint, Date.parse(since));
      if (one === undefined) return delivery;
      const { paymentId, revision } = one;
      return withSingle(delivery, recorded, { kind: 'resend', paymentId, revision }, nowMs);
    }
    case 'WebhookEndpointEnabled': {
      const { resumeFrom, after = null } = event.data;
      return enabled(delivery, resumeFrom === 'now' ? after : undefined, nowMs);
    }
    default:
      return delivery;
  }
};

/** `events` is the whole stream of the merchant. */
export const followEndpointEvents = (
  delivery: Delivery,
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
  nowMs: number,
): Delivery => {
  const before = delivery.row.followedRevision;
  let followed = delivery;
  for (const recorded of events) {
    if (recorded.revision <= before || !isOfWebhooks(recorded)) continue;
    followed = afterEvent(followed, endpoint, recorded, nowMs);
  }
  const followedRevision = Math.max(before, events.at(-1)?.revision ?? -1);
  return { ...followed, row: { ...followed.row, followedRevision } };
};
