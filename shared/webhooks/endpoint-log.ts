/**
 * The endpoints of merchants in the event store: read, decided and appended. The command side appends
 * what merchants request, the deliverer that an endpoint was disabled.
 */
import { expectedAfter, timeAfter } from '../event-store/append-after.ts';
import { AppendOutcomeUnknown, RevisionConflict } from '../event-store/errors.ts';
import type { EventContext, EventStore, RecordedEvent } from '../event-store/port.ts';
import { WEBHOOK_MERCHANTS_STREAM, type WebhookEvent } from '../payment/webhook-events.ts';
import { newEventId } from '../runtime/ids.ts';
import { type Decided, decideEndpoint, type EndpointCommand } from './decide.ts';
import { type Endpoint, endpointStreamOf, foldEndpoints } from './endpoints.ts';

type Store = Pick<EventStore, 'readStream' | 'append'>;

/** A merchant's endpoints, with the events that they are folded from. */
export type MerchantEndpoints = {
  merchantId: string;
  endpoints: Endpoint[];
  events: readonly RecordedEvent[];
};

/** Throws what `readStream` throws. */
export const readEndpoints = async (
  store: Pick<EventStore, 'readStream'>,
  merchantId: string,
): Promise<MerchantEndpoints> => {
  const events = await store.readStream(endpointStreamOf(merchantId));
  return { merchantId, endpoints: foldEndpoints(events), events };
};

/** The merchants that have, or had, an endpoint. Throws what `readStream` throws. */
export const merchantsWithEndpoints = async (
  store: Pick<EventStore, 'readStream'>,
): Promise<{ merchantIds: string[]; events: readonly RecordedEvent[] }> => {
  const events = await store.readStream(WEBHOOK_MERCHANTS_STREAM);
  const merchantIds = events.flatMap(({ event }) =>
    event.type === 'WebhookMerchantAdded' ? [event.data.merchantId] : [],
  );
  return { merchantIds: [...new Set(merchantIds)], events };
};

const appendTo = async (
  store: Store,
  stream: string,
  last: RecordedEvent | undefined,
  events: readonly WebhookEvent[],
  context: EventContext,
): Promise<RecordedEvent[]> => {
  const time = timeAfter(last);
  const batch = events.map((event) => ({ id: newEventId(), time, event, context }));
  const append = () => store.append(stream, expectedAfter(last), batch);
  return append().catch((error: unknown) => {
    // The very same append again stores nothing twice.
    if (error instanceof AppendOutcomeUnknown) return append();
    throw error;
  });
};

/** What is left of the time in which a command is decided again on conflicts, in milliseconds. */
type TimeLeft = { leftMs(): number };

/** For a command that no request waits for. */
const COMMAND_MS_MAX = 10_000;
const fromNow = (): TimeLeft => {
  const endMs = performance.now() + COMMAND_MS_MAX;
  return { leftMs: () => Math.max(0, endMs - performance.now()) };
};

const onConflictAgain = async <T>(time: TimeLeft, attempt: () => Promise<T>): Promise<T> => {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof RevisionConflict) || time.leftMs() === 0) throw error;
    }
  }
};

/** Names a merchant in the stream of merchants, once. Before its first endpoint: a crash between leaves a name too many. */
const addMerchant = (
  store: Store,
  merchantId: string,
  context: EventContext,
  time: TimeLeft,
): Promise<void> =>
  onConflictAgain(time, async () => {
    const { merchantIds, events } = await merchantsWithEndpoints(store);
    if (merchantIds.includes(merchantId)) return;
    const event: WebhookEvent = { type: 'WebhookMerchantAdded', data: { merchantId } };
    await appendTo(store, WEBHOOK_MERCHANTS_STREAM, events.at(-1), [event], context);
  });

export type Handled =
  | (Extract<Decided, { kind: 'events' }> & { after: MerchantEndpoints; appended: RecordedEvent[] })
  | Exclude<Decided, { kind: 'events' }>;

/**
 * Decides a command of a merchant and appends its events; again on a conflict of revisions while
 * there is time left. Throws what the event store throws.
 */
export const handleEndpointCommand = (
  store: Store,
  merchantId: string,
  command: EndpointCommand,
  context: EventContext,
  time: TimeLeft = fromNow(),
): Promise<Handled> =>
  onConflictAgain(time, async () => {
    const before = await readEndpoints(store, merchantId);
    const decided = decideEndpoint(before.endpoints, command);
    if (decided.kind !== 'events') return decided;
    if (decided.events.length === 0) return { ...decided, after: before, appended: [] };
    if (before.events.length === 0) await addMerchant(store, merchantId, context, time);
    const stream = endpointStreamOf(merchantId);
    const last = before.events.at(-1);
    const appended = await appendTo(store, stream, last, decided.events, context);
    const events = [...before.events, ...appended];
    return {
      ...decided,
      appended,
      after: { merchantId, endpoints: foldEndpoints(events), events },
    };
  });
