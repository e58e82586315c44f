/** Delivers to one endpoint. Outcomes are saved together: a crash then repeats a few requests. */
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { pause, type StartTimer } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { newDeliveryRow, parseDeliveryRow } from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';
import { isWanted } from '../../shared/webhooks/message.ts';
import { deliveryOf, failed, type Item, isTest, nextStep, readOn, started } from './delivery.ts';
import { followEndpointEvents } from './endpoint-events.ts';
import { type LogFeed, nextPortion, type Portion } from './log-feed.ts';
import { type SendDeps, type SendState, sendItem, setDelivery } from './send-item.ts';

/** Another process delivers to the endpoint. */
class Overtaken extends Error {
  override name = 'Overtaken';
}

export type LoopDeps = SendDeps & {
  deliveries: Pick<DeliveryStore, 'load' | 'save'>;
  feed: LogFeed;
  startTimer: StartTimer;
};

export type EndpointLoop = SendState & {
  saved: { version: number; checkpoint: string | null; atMs: number };
  /** Aborted where the log is read from another place. */
  reading: AbortController | undefined;
  running: Set<Promise<void>>;
  wakeUp: PromiseWithResolvers<void>;
  /** So that several faults in a row are one line. */
  isInterrupted: boolean;
  end: AbortController;
  ended: Promise<void>;
};

/** For a checkpoint that only passes events of others. */
const SAVE_EVERY_MS = 10_000;
/** So many attempts, and for so long, wait for their save while others are under way. */
const UNSAVED_MAX = 16;
const UNSAVED_MS = 50;
const RETRY_MS = 1_000;

/** Throws Overtaken once another deliverer has saved. */
const save = async (loop: EndpointLoop, { deliveries, nowMs }: LoopDeps): Promise<void> => {
  const { attempts, saved, delivery, endpoint } = loop;
  const { version } = saved;
  loop.attempts = [];
  loop.isChanged = false;
  saved.atMs = nowMs();
  try {
    const text = JSON.stringify(delivery.row);
    if (!(await deliveries.save(endpoint.endpointId, text, version, attempts)))
      throw new Overtaken('another process delivers to this endpoint');
    Object.assign(saved, { version: version + 1, checkpoint: delivery.row.checkpoint });
  } catch (error) {
    loop.attempts = [...attempts, ...loop.attempts];
    loop.isChanged = true;
    saved.atMs = Number.NEGATIVE_INFINITY;
    throw error;
  }
};

/**
 * For `runLoop`. Saves the row: then older deliverers fail to. `events` are all of the endpoint's merchant.
 */
export const openLoop = async (
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
  deps: LoopDeps,
): Promise<EndpointLoop> => {
  const { endpointId, after } = endpoint;
  const stored = await deps.deliveries.load(endpointId);
  const born = events.findIndex(
    ({ event }) => event.type === 'WebhookEndpointCreated' && event.data.endpointId === endpointId,
  );
  const row = stored === undefined ? newDeliveryRow(after, born) : parseDeliveryRow(stored.text);
  const loop: EndpointLoop = {
    endpoint,
    delivery: deliveryOf(row),
    attempts: [],
    isChanged: true,
    lastHeard: undefined,
    saved: { version: stored?.version ?? 0, checkpoint: row.checkpoint, atMs: 0 },
    reading: undefined,
    running: new Set(),
    wakeUp: Promise.withResolvers(),
    isInterrupted: false,
    end: new AbortController(),
    ended: Promise.resolve(),
  };
  await save(loop, deps);
  setDelivery(loop, followEndpointEvents(loop.delivery, endpoint, events, deps.nowMs()));
  return loop;
};

const wake = (loop: EndpointLoop): void => {
  loop.wakeUp.resolve();
  loop.wakeUp = Promise.withResolvers();
};

/** `events` are all of the endpoint's merchant. */
export const updateLoop = (
  loop: EndpointLoop,
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
  nowMs: number,
): void => {
  const before = loop.delivery.readTo.position;
  loop.endpoint = endpoint;
  setDelivery(loop, followEndpointEvents(loop.delivery, endpoint, events, nowMs));
  if (loop.delivery.readTo.position !== before) loop.reading?.abort();
  wake(loop);
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
    setDelivery(loop, failed(loop.delivery, item, deps.nowMs(), failure).delivery);
  }
};

const begin = (loop: EndpointLoop, item: Item, deps: LoopDeps): void => {
  loop.delivery = started(loop.delivery, item);
  const sending = send(loop, item, deps).finally(() => {
    loop.running.delete(sending);
    wake(loop);
  });
  loop.running.add(sending);
};

const take = (loop: EndpointLoop, { facts, readTo }: Portion): void => {
  const { endpoint, delivery } = loop;
  const { rescan, checkpoint } = delivery.row;
  const wanted = facts.filter(
    ({ merchantId, type, atMs }) =>
      merchantId === endpoint.merchantId &&
      (type === undefined || isWanted(endpoint, type)) &&
      (rescan === null || atMs >= rescan.before),
  );
  loop.delivery = readOn(delivery, wanted, readTo);
  // A checkpoint that only passes events of others is saved now and then.
  if (wanted.length > 0 && checkpoint !== loop.delivery.row.checkpoint) loop.isChanged = true;
};

const read = async (loop: EndpointLoop, deps: LoopDeps): Promise<void> => {
  const own = new AbortController();
  loop.reading = own;
  const leave = AbortSignal.any([loop.end.signal, own.signal]);
  const { readTo, row } = loop.delivery;
  const upTo = row.rescan?.upTo ?? null;
  try {
    const { merchantId } = loop.endpoint;
    const portion = await nextPortion(deps.feed, merchantId, readTo.position, upTo, leave);
    if (own.signal.aborted) return;
    if (portion !== undefined) return take(loop, portion);
    const there = { ...loop.delivery, row: { ...loop.delivery.row, rescan: null } };
    setDelivery(loop, readOn(there, [], { position: upTo, hash: null }));
  } catch (error) {
    if (leave.aborted) return;
    noteInterrupted(loop, error, deps);
    await pause(RETRY_MS, loop.end.signal);
  } finally {
    if (loop.reading === own) loop.reading = undefined;
    wake(loop);
  }
};

/** Infinite where the row is as it was saved. */
const saveAtMs = (loop: EndpointLoop, item: Item | undefined, nowMs: number): number => {
  const { saved, running, attempts, delivery } = loop;
  if (loop.isChanged) {
    const isBusy = running.size > 0 || item !== undefined;
    return isBusy && attempts.length < UNSAVED_MAX ? saved.atMs + UNSAVED_MS : nowMs;
  }
  const isElsewhere = delivery.row.checkpoint !== saved.checkpoint;
  return isElsewhere ? saved.atMs + SAVE_EVERY_MS : Number.POSITIVE_INFINITY;
};

/** Saves, or begins a request, or has the log read on; then until when there is nothing to do. */
const turn = async (loop: EndpointLoop, deps: LoopDeps): Promise<number> => {
  const nowMs = deps.nowMs();
  const step = nextStep(loop.delivery, nowMs);
  const isEnabled = loop.endpoint.disabled === undefined;
  const item = isEnabled || (step.send && isTest(step.send)) ? step.send : undefined;
  const saveMs = saveAtMs(loop, item, nowMs);
  if (saveMs <= nowMs) {
    await save(loop, deps);
    return nowMs;
  }
  if (item !== undefined) {
    begin(loop, item, deps);
    return nowMs;
  }
  if (step.read && isEnabled && loop.reading === undefined) void read(loop, deps);
  return Math.min(step.untilMs ?? Number.POSITIVE_INFINITY, saveMs, nowMs + SAVE_EVERY_MS);
};

const waitUntil = async (
  loop: EndpointLoop,
  untilMs: number,
  { startTimer, nowMs }: LoopDeps,
): Promise<void> => {
  const woken = loop.wakeUp.promise;
  const stop = startTimer(() => wake(loop), Math.max(0, untilMs - nowMs()));
  if (!loop.end.signal.aborted) await woken;
  stop();
};

/** Until `loop.end` is aborted. Rejects where another process has taken the row. */
export const runLoop = async (loop: EndpointLoop, deps: LoopDeps): Promise<void> => {
  const { signal } = loop.end;
  signal.addEventListener('abort', () => wake(loop), { once: true });
  while (!signal.aborted) {
    const woken = loop.wakeUp;
    try {
      const untilMs = await turn(loop, deps);
      if (untilMs > deps.nowMs() && woken === loop.wakeUp) await waitUntil(loop, untilMs, deps);
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof Overtaken) throw error;
      deps.logger.warn(
        { endpointId: loop.endpoint.endpointId, reason: reasonOf(error) },
        'webhook state not saved: nothing is sent until it can be',
      );
      await pause(RETRY_MS, signal);
    }
  }
  loop.reading?.abort();
  await Promise.allSettled(loop.running);
  // What ended meanwhile is saved too, so that it is not repeated.
  if (loop.isChanged) await save(loop, deps).catch(() => undefined);
};
