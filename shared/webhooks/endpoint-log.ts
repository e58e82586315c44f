/** The endpoints of merchants in the event store: read, decided and appended. */
import { expectedAfter, timeAfter } from '../event-store/codec.ts';
import { AppendOutcomeUnknown, RevisionConflict, UnreadableStream } from '../event-store/errors.ts';
import type { EventContext, EventStore, RecordedEvent } from '../event-store/port.ts';
import { isOfSameRequest, isUnderKeyOf, type Recognised } from '../payment/state.ts';
import {
  identityOf,
  WEBHOOK_MERCHANTS_STREAM,
  type WebhookEvent,
} from '../payment/webhook-events.ts';
import { reasonOf } from '../runtime/error-text.ts';
import { newEventId } from '../runtime/ids.ts';
import { type Decided, decideEndpoint, type EndpointCommand } from './decide.ts';
import { type Endpoint, endpointStreamOf, foldEndpoints, isOfWebhooks } from './endpoints.ts';

type Store = Pick<EventStore, 'readStream' | 'append'>;

type MerchantEndpoints = { endpoints: Endpoint[]; events: readonly RecordedEvent[] };

/** Throws as `readStream` does. */
export const readEndpoints = async (
  store: Pick<EventStore, 'readStream'>,
  merchantId: string,
): Promise<MerchantEndpoints> => {
  const events = await store.readStream(endpointStreamOf(merchantId));
  return { endpoints: foldEndpoints(events), events };
};

/** Undefined where they cannot be read: other merchants go on (ADR-0220). Throws StoreUnavailable. */
export const readableEndpoints = async (
  store: Pick<EventStore, 'readStream'>,
  merchantId: string,
  onUnreadable: (reason: string) => void,
): Promise<MerchantEndpoints | undefined> => {
  try {
    return await readEndpoints(store, merchantId);
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    onUnreadable(reasonOf(error));
    return undefined;
  }
};

/** Also merchants that had an endpoint once. Throws as `readStream` does. */
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

/** How long a command may still be decided again on conflicts. */
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

/** Once, before the merchant's first endpoint: a crash between leaves a name too many. */
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
  /**
   * Stored now, or earlier under the `Idempotency-Key`; `endpoint` is right after these events, or a deleted
   * one before them.
   */
  | { kind: 'stored'; events: RecordedEvent[]; endpoint: Endpoint; isRepeat: boolean }
  | { kind: 'key reused' }
  | Exclude<Decided, { kind: 'events' }>;

const endpointAfter = (events: readonly RecordedEvent[], endpointId: string): Endpoint => {
  const endpoint = foldEndpoints(events).find((one) => one.endpointId === endpointId);
  if (endpoint === undefined) throw new Error(`webhook endpoint ${endpointId} is gone`);
  return endpoint;
};

/** Undefined where nothing was stored under the key, and for a request without one. */
const storedUnderKey = (
  events: readonly RecordedEvent[],
  request: Recognised | undefined,
): Handled | undefined => {
  if (request === undefined) return undefined;
  for (const [at, recorded] of events.entries()) {
    if (!isOfWebhooks(recorded) || !('endpointId' in recorded.event.data)) continue;
    const identity = identityOf(recorded.event);
    if (identity === undefined || !isUnderKeyOf({ identity }, request)) continue;
    if (!isOfSameRequest({ identity }, request)) return { kind: 'key reused' };
    const endpoint = endpointAfter(events.slice(0, at + 1), recorded.event.data.endpointId);
    return { kind: 'stored', events: [recorded], endpoint, isRepeat: true };
  }
  return undefined;
};

/** `request` is present where it had an `Idempotency-Key`. */
type Circumstances = { time?: TimeLeft; request?: Recognised | undefined };

/** Decides again on a conflict of revisions while there is time left. Throws as the event store does. */
export const handleEndpointCommand = (
  store: Store,
  merchantId: string,
  command: EndpointCommand,
  context: EventContext,
  { time = fromNow(), request }: Circumstances = {},
): Promise<Handled> =>
  onConflictAgain(time, async () => {
    const { endpoints, events: before } = await readEndpoints(store, merchantId);
    const decided = decideEndpoint(endpoints, command, request?.identity);
    if (decided.kind === 'unknown endpoint') return decided;
    const earlier = storedUnderKey(before, request);
    if (earlier !== undefined) return earlier;
    if (decided.kind !== 'events') return decided;
    if (before.length === 0) await addMerchant(store, merchantId, context, time);
    const stream = endpointStreamOf(merchantId);
    const events =
      decided.events.length === 0
        ? []
        : await appendTo(store, stream, before.at(-1), decided.events, context);
    const { endpointId } = command.kind === 'create' ? command.endpoint : command;
    const shown = command.kind === 'delete' ? before : [...before, ...events];
    const endpoint = endpointAfter(shown, endpointId);
    return { kind: 'stored', events, endpoint, isRepeat: false };
  });
