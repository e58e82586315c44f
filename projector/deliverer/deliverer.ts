/**
 * The deliverer sends each event of a payment to the endpoints of its merchant. It follows the log beside
 * the relay, under the projector's lease; when it fails, it delays neither commands nor reads.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore, Position } from '../../shared/event-store/port.ts';
import { WEBHOOK_MERCHANTS_STREAM } from '../../shared/payment/webhook-events.ts';
import type { BackOff } from '../../shared/runtime/back-off.ts';
import { merchantsWithEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import { runSubscription, type Subscription } from '../subscription.ts';
import {
  type EndpointsOptions,
  endServing,
  follow,
  followLog,
  openServing,
  type Serving,
  statusOf,
} from './endpoints.ts';
import type { Sender } from './send.ts';
import { type DelivererStatus, endpointsStatus } from './status.ts';

export type Turn = 'own' | 'of another' | 'unknown';

export type DelivererOptions = EndpointsOptions & {
  store: Pick<EventStore, 'subscribe' | 'lastRevision'>;
  sender: Sender;
  /** Throws where another secret was used before. */
  secret(): Promise<string>;
  turn(): Turn;
  /** Whether the process before has ended its requests, and handed its turn over. */
  handedOver?(): boolean;
  backOff?: BackOff;
  /** Tests shorten them. */
  waitsMs?: Partial<typeof WAITS_MS>;
};

export type Deliverer = {
  status(): DelivererStatus;
  stop(): Promise<void>;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  idle: 1_000,
  /** After another process had the lease: its last requests are over then. */
  takeover: 15_000,
};

/** An engine out of reach is no error: the deliverer waits for it. */
export const startDeliverer = (options: DelivererOptions): Deliverer => {
  const { store, deliveries, sender, logger, turn } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const stopping = new AbortController();
  const { signal } = stopping;
  /** Undefined while this process has no turn. */
  let serving: Serving | undefined;
  let standingBy = false;
  let waiting: 'standing-by' | 'idle' | undefined = 'idle';

  const waitForTurn = async (): Promise<void> => {
    while (turn() !== 'own') {
      standingBy ||= turn() === 'of another';
      waiting = standingBy ? 'standing-by' : 'idle';
      await delay(waitsMs.standBy, undefined, { signal });
    }
    // Requests of a process that was lost may still be on their way.
    if (standingBy && options.handedOver?.() !== true)
      await delay(waitsMs.takeover, undefined, { signal });
    standingBy = false;
  };

  const waitForEndpoints = async (): Promise<void> => {
    while ((await store.lastRevision(WEBHOOK_MERCHANTS_STREAM)) === null) {
      waiting = 'idle';
      await delay(waitsMs.idle, undefined, { signal });
      if (turn() !== 'own') throw new Error('another process delivers');
    }
  };

  const start = async (): Promise<Position | null> => {
    await endServing(serving);
    serving = undefined;
    try {
      await waitForTurn();
      await waitForEndpoints();
    } finally {
      waiting = undefined;
    }
    const secret = await options.secret();
    const from = await store.end();
    const opened = openServing(options, { secret, from }, () => subscription.restart());
    serving = opened;
    const { merchantIds } = await merchantsWithEndpoints(store);
    for (const merchantId of merchantIds) await follow(opened, merchantId);
    return from;
  };

  const subscription: Subscription = runSubscription({
    store,
    logger,
    backOff: options.backOff,
    subscriber: {
      start,
      events: async (events) => serving && followLog(serving, events),
      caughtUp: () => undefined,
    },
  });

  // The lease is lost without an event of the log, also within a start.
  const watch = setInterval(() => {
    if (turn() === 'own' || serving === undefined) return;
    void endServing(serving);
    serving = undefined;
    subscription.restart();
  }, waitsMs.standBy);
  watch.unref();

  return {
    status: () => {
      const { state, error } = subscription.status();
      // While a start waits, the last error of the subscription is over.
      const wait = state === 'stopped' ? undefined : waiting;
      const isOver = state === 'stopped' || state === 'backing-off';
      return {
        state: wait ?? (isOver ? state : 'running'),
        ...(error === undefined || wait !== undefined ? {} : { error }),
        ...(serving === undefined ? endpointsStatus([], 0) : statusOf(serving)),
      };
    },
    stop: async () => {
      clearInterval(watch);
      stopping.abort();
      const ended = endServing(serving);
      await subscription.stop();
      await ended;
      await endServing(serving);
      await sender.close();
      await deliveries.close();
    },
  };
};
