/**
 * The deliverer: sends each event of a payment to the endpoints of its merchant. It follows the log
 * beside the relay and the projection, under the projector's lease, and costs a look at one stream
 * while no merchant has an endpoint. A deliverer that fails delays neither commands nor reads.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { followPaymentStates } from '../../shared/event-store/payment-states.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { WEBHOOK_MERCHANTS_STREAM, WEBHOOK_STREAMS } from '../../shared/payment/webhook-events.ts';
import type { BackOff } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import { type StartTimer, startTimer } from '../../shared/runtime/timer.ts';
import type { Attempt, DeliveryRow } from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import { merchantsWithEndpoints, readableEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import { type Endpoint, endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import { misfitOf } from '../log-check.ts';
import { runSubscription, type Subscription } from '../subscription.ts';
import { followCommands } from './commands.ts';
import { type DelivererStatus, endpointsStatus } from './deliverer-status.ts';
import { deliveryOf } from './delivery.ts';
import { type EndpointLoop, type LoopDeps, startEndpointLoop } from './endpoint-loop.ts';
import { createLogFeed } from './log-feed.ts';
import { createMessages } from './messages.ts';
import { takeRow } from './own-row.ts';
import { followPaymentFacts } from './payment-facts.ts';
import { createPermits } from './permits.ts';
import { createPlaces } from './places.ts';
import type { Sender } from './send.ts';
import type { SendDeps } from './send-item.ts';

/** Whose turn it is, where several processes could deliver. Nobody's until that is known. */
export type Turn = 'own' | 'of another' | 'unknown';

export type DelivererOptions = {
  store: Pick<
    EventStore,
    'subscribe' | 'readStream' | 'readAll' | 'end' | 'hashAt' | 'lastRevision'
  >;
  deliveries: DeliveryStore;
  sender: Sender;
  disable: SendDeps['disable'];
  /** `WEBHOOK_SECRET`. Throws where the store says that another one was used before. */
  secret(): Promise<string>;
  logger: Logger;
  turn(): Turn;
  onAttempt?(attempt: Attempt): void;
  backOff?: BackOff;
  nowMs?(): number;
  startTimer?: StartTimer;
  random?(): number;
  /** In milliseconds; tests shorten them. */
  waitsMs?: Partial<typeof WAITS_MS>;
};

export type Deliverer = {
  status(): DelivererStatus;
  /** Aborts what is being sent. */
  stop(): Promise<void>;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  /** Between two looks for the first endpoint. */
  idle: 1_000,
  /** After another process had the lease: its last requests are over then. */
  takeover: 15_000,
};
const PAGES_MAX = 4;

/** Starts delivering. An engine out of reach is no error: the deliverer waits for it. */
export const startDeliverer = (options: DelivererOptions): Deliverer => {
  const { store, deliveries, sender, logger, turn, nowMs = Date.now } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const stopping = new AbortController();
  const newMessages = () => createMessages(store, followPaymentStates(store));
  let messages = newMessages();
  /** Merchants with an endpoint that is not disabled. */
  const served = new Set<string>();
  const feed = createLogFeed({
    store,
    facts: followPaymentFacts(store, (event, merchantId) =>
      served.has(merchantId) ? messages.keep(event) : undefined,
    ),
    pages: createPermits(PAGES_MAX, PAGES_MAX),
  });
  const places = createPlaces();
  type Running = { endpoint: Endpoint; loop: EndpointLoop; end: AbortController };
  const loops = new Map<string, Running>();
  /** The merchant of each that is halted: an endpoint by its id, all of a merchant's by their stream. */
  const halted = new Map<string, string>();
  /** By the stream of its endpoints. */
  const merchants = new Map<string, string>();
  let standingBy = false;
  /** From the end of a start on, until it loses its turn. */
  let delivers = false;
  /** What `start` waits for; undefined while it waits for nothing. */
  let waiting: 'standing-by' | 'idle' | undefined = 'idle';
  let secret = '';

  const loopDeps = (): LoopDeps => ({
    feed,
    messages,
    sender,
    places,
    secret,
    logger,
    disable: options.disable,
    onAttempt: options.onAttempt ?? (() => undefined),
    nowMs,
    startTimer: options.startTimer ?? startTimer,
    random: options.random ?? Math.random,
  });

  const endLoops = async (): Promise<void> => {
    const ending = [...loops.values()];
    loops.clear();
    halted.clear();
    for (const { end } of ending) end.abort();
    await Promise.allSettled(ending.map(({ loop }) => loop.ended));
  };

  /** False where the log does not fit what was sent: nothing is sent from such a log. */
  const fitsLog = async (endpoint: Endpoint, { checkpoint, hash }: DeliveryRow) => {
    const { endpointId } = endpoint;
    const misfit = await misfitOf(store, checkpoint, hash);
    if (misfit === undefined) return true;
    halted.set(endpointId, endpoint.merchantId);
    logger.error(
      { endpointId, checkpoint },
      `webhook endpoint halted: the event log ${misfit} what was sent; put the right log back, or resume the endpoint from now`,
    );
    return false;
  };

  const startLoop = async (endpoint: Endpoint, events: readonly RecordedEvent[]): Promise<void> => {
    const { endpointId } = endpoint;
    const born = events.findIndex(
      ({ event }) =>
        event.type === 'WebhookEndpointCreated' && event.data.endpointId === endpointId,
    );
    const row = await takeRow(deliveries, endpoint, born);
    const { row: next } = followCommands(deliveryOf(row.value()), endpoint, events, nowMs());
    halted.delete(endpointId);
    if (!(await fitsLog(endpoint, next))) return;
    const end = new AbortController();
    const signal = AbortSignal.any([stopping.signal, end.signal]);
    const loop = startEndpointLoop(endpoint, events, row, loopDeps(), signal);
    loops.set(endpointId, { endpoint, loop, end });
    loop.ended.catch((error: unknown) => {
      if (loops.get(endpointId)?.loop !== loop) return;
      logger.warn(
        { endpointId, reason: reasonOf(error) },
        'webhook delivery interrupted: it starts again',
      );
      subscription.restart();
    });
  };

  const endLoop = async (endpointId: string): Promise<void> => {
    const running = loops.get(endpointId);
    loops.delete(endpointId);
    halted.delete(endpointId);
    running?.end.abort();
    await running?.loop.ended.catch(() => undefined);
  };

  const follow = async (merchantId: string): Promise<void> => {
    const stream = endpointStreamOf(merchantId);
    merchants.set(stream, merchantId);
    halted.delete(stream);
    const ofLoops = [...loops].map(([id, { endpoint }]) => [id, endpoint.merchantId] as const);
    const here = [...ofLoops, ...halted].filter(([, of]) => of === merchantId).map(([id]) => id);
    const found = await readableEndpoints(store, merchantId, (reason) =>
      logger.error(
        { stream, merchant: merchantId, reason },
        'webhook endpoints of a merchant halted: their events cannot be read; put the right log back',
      ),
    );
    if (found === undefined) {
      await Promise.all(here.map(endLoop));
      served.delete(merchantId);
      halted.set(stream, merchantId);
      return;
    }
    const { endpoints, events } = found;
    if (endpoints.some(({ disabled }) => disabled === undefined)) served.add(merchantId);
    else served.delete(merchantId);
    for (const endpoint of endpoints) {
      const running = loops.get(endpoint.endpointId);
      if (running === undefined) await startLoop(endpoint, events);
      else running.loop.update(endpoint, events);
    }
    const known = new Set(endpoints.map(({ endpointId }) => endpointId));
    for (const endpointId of here) {
      if (known.has(endpointId)) continue;
      await endLoop(endpointId);
      await deliveries.remove(endpointId);
    }
  };

  const waitForTurn = async (): Promise<void> => {
    const { signal } = stopping;
    while (turn() !== 'own') {
      standingBy ||= turn() === 'of another';
      waiting = standingBy ? 'standing-by' : 'idle';
      await delay(waitsMs.standBy, undefined, { signal });
    }
    // Requests of the process that delivered until now may still be on their way.
    if (standingBy) await delay(waitsMs.takeover, undefined, { signal });
    standingBy = false;
  };

  const waitForEndpoints = async (): Promise<void> => {
    while ((await store.lastRevision(WEBHOOK_MERCHANTS_STREAM)) === null) {
      waiting = 'idle';
      await delay(waitsMs.idle, undefined, { signal: stopping.signal });
      if (turn() !== 'own') throw new Error('another process delivers');
    }
  };

  const start = async () => {
    delivers = false;
    await endLoops();
    try {
      await waitForTurn();
      await waitForEndpoints();
    } finally {
      waiting = undefined;
    }
    secret = await options.secret();
    const at = await store.end();
    feed.begin(at);
    // The log may be another one than before: what was made of that is forgotten.
    messages = newMessages();
    const { merchantIds } = await merchantsWithEndpoints(store);
    for (const merchantId of merchantIds) await follow(merchantId);
    delivers = true;
    return at;
  };

  const merchantOf = (event: LogEvent): string | undefined => {
    const known = merchants.get(event.stream);
    if (known !== undefined || !event.stream.startsWith(WEBHOOK_STREAMS)) return known;
    return 'event' in event && event.event.type === 'WebhookEndpointCreated'
      ? event.event.data.merchantId
      : undefined;
  };

  const subscription: Subscription = runSubscription({
    store,
    logger,
    backOff: options.backOff,
    subscriber: {
      start,
      events: async (events) => {
        await feed.add(events);
        const changed = new Set(events.map(merchantOf));
        for (const merchantId of changed) if (merchantId !== undefined) await follow(merchantId);
      },
      caughtUp: () => undefined,
    },
  });

  // The lease is lost without an event of the log, also within a start: what is being sent is aborted.
  const watch = setInterval(() => {
    if (turn() !== 'own' && (delivers || loops.size > 0)) {
      delivers = false;
      void endLoops();
      subscription.restart();
    }
  }, waitsMs.standBy);
  watch.unref();

  return {
    status: () => {
      const { state, error } = subscription.status();
      const isOver = state === 'stopped' || state === 'backing-off';
      // While it waits, the last error of its subscription is over.
      const wait = state === 'stopped' ? undefined : waiting;
      return {
        state: wait ?? (isOver ? state : 'running'),
        ...(error === undefined || wait !== undefined ? {} : { error }),
        ...endpointsStatus([...loops.values()], halted.size),
      };
    },
    stop: async () => {
      clearInterval(watch);
      stopping.abort();
      await subscription.stop();
      await endLoops();
      await sender.close();
      await deliveries.close();
    },
  };
};
