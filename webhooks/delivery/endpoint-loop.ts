/** Delivers to one endpoint. A crash repeats what ended since the row was saved. */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { pause } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Endpoint } from '../endpoints/endpoints.ts';
import { isWanted } from '../message.ts';
import { beginDelivery, failed, type Item, nextStep, readOn, started } from './delivery.ts';
import {
  type DeliveryRow,
  newDeliveryRow,
  parseDeliveryRow,
  textOfDeliveryRow,
} from './delivery-row.ts';
import { followEndpointEvents } from './endpoint-events.ts';
import { feedPage, type LogFeed, type Portion } from './log-feed.ts';
import { type SendDeps, type SendState, sendItem } from './send-item.ts';

/** Another process delivers to the endpoint. */
class Overtaken extends Error {
  override name = 'Overtaken';
}

export type LoopDeps = SendDeps & { feed: LogFeed };

const newLoop = (endpoint: Endpoint, row: DeliveryRow, version: number) => ({
  endpoint,
  delivery: beginDelivery(row),
  attempts: [] as SendState['attempts'],
  lastHeard: undefined as SendState['lastHeard'],
  saved: { version, row: undefined as DeliveryRow | undefined, atMs: 0 },
  /** For the feed: nothing of its merchant lies up to the head, or the feed has not come to `readTo`. */
  waits: undefined as 'at the head' | 'beyond it' | undefined,
  isReading: false,
  sending: new Set<Promise<void>>(),
  /** Of the turn that follows. */
  wakeUp: Promise.withResolvers<void>(),
  /** So that several faults in a row are one line. */
  isInterrupted: false,
  /** The log does not fit what was sent: nothing is. */
  isHalted: false,
  end: new AbortController(),
  ended: Promise.resolve(),
});
export type EndpointLoop = ReturnType<typeof newLoop>;

/** For a row without a new attempt, such as a checkpoint that only passes events of others. */
const SAVE_EVERY_MS = 10_000;
const RETRY_MS = 1_000;

/** Throws Overtaken once another deliverer has saved. */
const save = async (loop: EndpointLoop, { deliveries, nowMs }: LoopDeps): Promise<void> => {
  const { attempts, saved, endpoint } = loop;
  const { row } = loop.delivery;
  const { version } = saved;
  loop.attempts = [];
  try {
    if (!(await deliveries.save(endpoint.endpointId, textOfDeliveryRow(row), version, attempts)))
      throw new Overtaken('another process delivers to this endpoint');
  } catch (error) {
    loop.attempts = [...attempts, ...loop.attempts];
    throw error;
  }
  loop.saved = { version: version + 1, row, atMs: nowMs() };
};

/** Saves the row: then older deliverers fail to. `events` are all of the endpoint's merchant. */
export const openLoop = async (
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
  deps: LoopDeps,
) => {
  const { endpointId, after } = endpoint;
  const stored = await deps.deliveries.load(endpointId);
  const born = events.findIndex(
    ({ event }) => event.type === 'WebhookEndpointCreated' && event.data.endpointId === endpointId,
  );
  const row = stored === undefined ? newDeliveryRow(after, born) : parseDeliveryRow(stored.text);
  const loop = newLoop(endpoint, row, stored?.version ?? 0);
  await save(loop, deps);
  updateLoop(loop, endpoint, events, deps);
  return loop;
};

const wake = (loop: EndpointLoop): void => loop.wakeUp.resolve();

/** Events of others alone lie between. */
const passToHead = (loop: EndpointLoop, { head }: LogFeed): void => {
  const { delivery } = loop;
  if (loop.waits === 'at the head' && delivery.readTo.position !== head.position)
    loop.delivery = readOn(delivery, [], head);
};

/** Before the feed gets something of its merchant. */
export const endWait = (loop: EndpointLoop, feed: LogFeed): void => {
  passToHead(loop, feed);
  loop.waits = undefined;
  wake(loop);
};

/** `events` are all of the endpoint's merchant. */
export const updateLoop = (
  loop: EndpointLoop,
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
  { feed, nowMs }: LoopDeps,
): void => {
  endWait(loop, feed);
  loop.endpoint = endpoint;
  // Saved in the next turn: its merchant may look at once.
  loop.saved.atMs = 0;
  loop.delivery = followEndpointEvents(loop.delivery, endpoint, events, nowMs());
};

/** An engine out of reach has its own line. */
const noteInterrupted = (loop: EndpointLoop, error: unknown, { logger }: LoopDeps): void => {
  if (loop.isInterrupted || error instanceof StoreUnavailable) return;
  loop.isInterrupted = true;
  const fields = { endpointId: loop.endpoint.endpointId, reason: reasonOf(error) };
  logger.warn(fields, 'webhook delivery interrupted: it is tried again');
};

const send = async (loop: EndpointLoop, item: Item, deps: LoopDeps): Promise<void> => {
  const { signal } = loop.end;
  try {
    await sendItem(loop, item, deps, signal);
    loop.isInterrupted = false;
  } catch (error) {
    if (signal.aborted) return;
    noteInterrupted(loop, error, deps);
    const failure = { ours: 'interrupted', random: deps.random() } as const;
    loop.delivery = failed(loop.delivery, item, deps.nowMs(), failure).delivery;
  }
};

const begin = (loop: EndpointLoop, item: Item, deps: LoopDeps): void => {
  loop.delivery = started(loop.delivery, item);
  const sending = send(loop, item, deps).finally(() => {
    loop.sending.delete(sending);
    wake(loop);
  });
  loop.sending.add(sending);
  wake(loop);
};

const take = (loop: EndpointLoop, { facts, readTo }: Portion): void => {
  const { endpoint, delivery } = loop;
  const { rescan } = delivery.row;
  const wanted = facts.filter(
    ({ merchantId, type, atMs }) =>
      merchantId === endpoint.merchantId &&
      (type === undefined || isWanted(endpoint, type)) &&
      (rescan === null || atMs >= rescan.before),
  );
  loop.delivery = readOn(delivery, wanted, readTo);
};

const readPage = async (loop: EndpointLoop, deps: LoopDeps): Promise<void> => {
  const { delivery, endpoint, end } = loop;
  const { readTo, row } = delivery;
  const upTo = row.rescan?.upTo;
  const last = upTo ?? deps.feed.head.position;
  loop.isReading = true;
  try {
    const page = await feedPage(deps.feed, endpoint.merchantId, readTo.position, last, end.signal);
    // Else its merchant has had it read from another place meanwhile.
    if (loop.delivery.readTo === readTo) {
      if (page !== undefined) take(loop, page);
      else if (upTo !== undefined) {
        const there = { ...loop.delivery, row: { ...loop.delivery.row, rescan: null } };
        loop.delivery = readOn(there, [], { position: upTo, hash: null });
      } else if (last === deps.feed.head.position) loop.waits = 'beyond it';
    }
  } catch (error) {
    if (!end.signal.aborted) noteInterrupted(loop, error, deps);
    await pause(RETRY_MS, end.signal);
  } finally {
    loop.isReading = false;
    wake(loop);
  }
};

/** From memory where it can be. */
const read = (loop: EndpointLoop, deps: LoopDeps): void => {
  const { readTo, row } = loop.delivery;
  const { head, kept } = deps.feed;
  const batch = kept.find(({ before }) => before === readTo.position);
  if (row.rescan !== null) void readPage(loop, deps);
  else if (readTo.position === head.position) loop.waits = 'at the head';
  else if (batch === undefined) void readPage(loop, deps);
  else {
    take(loop, batch);
    wake(loop);
  }
};

/** Infinite where the row is as it was saved. */
const saveAtMs = ({ saved, attempts, delivery }: EndpointLoop): number => {
  if (attempts.length > 0) return 0;
  return delivery.row === saved.row ? Number.POSITIVE_INFINITY : saved.atMs + SAVE_EVERY_MS;
};

/** Saves; begins a request, or else has the log read on; then until when there is nothing to do. */
const turn = async (loop: EndpointLoop, deps: LoopDeps): Promise<number> => {
  passToHead(loop, deps.feed);
  if (saveAtMs(loop) <= deps.nowMs()) await save(loop, deps);
  const nowMs = deps.nowMs();
  const step = nextStep(loop.delivery, nowMs);
  const isEnabled = loop.endpoint.disabled === undefined;
  if (step.send !== undefined && (isEnabled || step.send.kind === 'test'))
    begin(loop, step.send, deps);
  else if (step.read && isEnabled && loop.waits === undefined && !loop.isReading) read(loop, deps);
  return Math.min(step.untilMs, saveAtMs(loop), nowMs + SAVE_EVERY_MS);
};

/** Until `loop.end` is aborted. Rejects where another process has taken the row. */
export const runLoop = async (loop: EndpointLoop, deps: LoopDeps): Promise<void> => {
  const { startTimer, nowMs, logger } = deps;
  const { signal } = loop.end;
  signal.addEventListener('abort', () => wake(loop), { once: true });
  while (!signal.aborted) {
    loop.wakeUp = Promise.withResolvers();
    try {
      const untilMs = await turn(loop, deps);
      const stop = startTimer(() => wake(loop), Math.max(0, untilMs - nowMs()));
      await loop.wakeUp.promise;
      stop();
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof Overtaken) throw error;
      logger.warn(
        { endpointId: loop.endpoint.endpointId, reason: reasonOf(error) },
        'webhook state not saved: nothing is sent until it can be',
      );
      await pause(RETRY_MS, signal);
    }
  }
  await Promise.allSettled(loop.sending);
  // What ended meanwhile is saved too, so that it is not repeated.
  if (loop.delivery.row !== loop.saved.row) await save(loop, deps).catch(() => undefined);
};
