/** A deliverer over memory, a test clock and a receiver that is a function. */
import type { ControlReads } from '../../shared/event-store/control-stream.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import { startDeliverer } from '../../webhooks/delivery/deliverer.ts';
import type { Attempt } from '../../webhooks/delivery/delivery-row.ts';
import { deliver } from '../../webhooks/delivery/follow-endpoints.ts';
import { disableIn } from '../../webhooks/delivery/open.ts';
import type { SendOutcome, WebhookSender } from '../../webhooks/delivery/send.ts';
import type { EndpointCommand } from '../../webhooks/endpoints/decide.ts';
import { handleEndpointCommand } from '../../webhooks/endpoints/endpoint-log.ts';
import type { DeliveryStore } from '../../webhooks/store/port.ts';
import { manualClock } from './manual-clock.ts';
import { type MemoryEventStore, memoryEventStore } from './memory-event-store.ts';
import { appendPayment, wholeLife } from './payment-events.ts';
import { openNothing } from './personal-data.ts';
import { silent } from './silent-log.ts';

export const WORLD_SECRET = 'a secret of the tests, 32 bytes long at least';
export const MERCHANT = 'm_1';

export const CONTEXT = { actor: 'test', requestId: 'r', correlationId: 'r', causationId: 'r' };

/** An endpoint that is sent what happens from now on. Returns its id. */
export const registerEndpoint = async (
  store: ControlReads & Pick<EventStore, 'append' | 'end'>,
  merchantId: string,
  url: string,
): Promise<string> => {
  const endpointId = `we_${newUlid()}`;
  const end = await store.end();
  const after = end === null ? {} : { after: end };
  const endpoint = { endpointId, merchantId, url, ...after, apiVersion: 'v1' as const };
  await handleEndpointCommand(store, {
    merchantId,
    command: { kind: 'create', endpoint },
    context: CONTEXT,
  });
  return endpointId;
};

/** Rows and attempts in memory. */
export const memoryDeliveries = () => {
  const rows = new Map<string, { version: number; text: string }>();
  const attempts = new Map<string, Attempt[]>();
  const store: DeliveryStore = {
    load: async (id) => rows.get(id),
    save: async (id, text, expected, made) => {
      if ((rows.get(id)?.version ?? 0) !== expected) return false;
      rows.set(id, { version: expected + 1, text });
      attempts.set(id, [...made.toReversed(), ...(attempts.get(id) ?? [])].slice(0, 1_000));
      return true;
    },
    attempts: async (id, { limit }) => {
      const own = attempts.get(id) ?? [];
      return own.slice(0, limit).map((attempt, at) => ({ number: own.length - at, attempt }));
    },
    remove: async (id) => {
      rows.delete(id);
      attempts.delete(id);
    },
    close: async () => undefined,
  };
  return { ...store, rows };
};

export type Sent = {
  url: string;
  headers: Record<string, string>;
  body: string;
  atMs: number;
  totalMs: number;
};

/** The projector's, in the process that has the turn, and in others. */
const STATE_AT_TURN = { own: 'running', 'of another': 'standing-by', unknown: 'starting' };

type WorldOptions = {
  store?: MemoryEventStore;
  deliveries?: DeliveryStore & Pick<ReturnType<typeof memoryDeliveries>, 'rows'>;
  /** What came of a request; 200 where left out. */
  outcome?: (sent: Sent) => Partial<SendOutcome> | Promise<Partial<SendOutcome>>;
  turn?: () => 'own' | 'of another' | 'unknown';
  handedOver?: () => boolean;
  /** In milliseconds. */
  takeover?: number;
};

/** Opens it; the clock begins at the real time, for events have real times. */
export const webhookWorld = (options: WorldOptions = {}) => {
  const { store = memoryEventStore(), deliveries = memoryDeliveries() } = options;
  const clock = manualClock();
  const beganMs = Date.now();
  const nowMs = () => beganMs + clock.nowMs();
  const sent: Sent[] = [];
  const world = { outcome: options.outcome };
  const lines: string[] = [];
  const infos: string[] = [];
  const write = (_fields: object, message: string) => void lines.push(message);
  const logger = {
    ...{ ...silent, error: write, warn: write },
    info: (_fields: object, message: string) => void infos.push(message),
  };

  const sender: WebhookSender = {
    send: async (url, headers, body, { totalMs }) => {
      const one = { url, headers, body, atMs: nowMs(), totalMs };
      sent.push(one);
      const outcome = await world.outcome?.(one);
      return { status: 200, error: null, retryAfterMs: undefined, ...outcome };
    },
    close: async () => undefined,
  };
  const disable = disableIn(store, logger);
  const { startTimer } = clock;
  const openText = openNothing;
  const parts = { store, deliveries, sender, disable, logger, nowMs, startTimer, openText };
  const deliverer = startDeliverer({
    store,
    begin: async (secret) =>
      deliver({ ...parts, secret, onAttempt: () => undefined, random: () => 0.5 }),
    secret: async () => WORLD_SECRET,
    interrupted: ({ reason }) => void infos.push(`interrupted: ${reason}`),
    leader: {
      status: () => ({ state: STATE_AT_TURN[options.turn?.() ?? 'own'] }),
      handedOver: options.handedOver ?? (() => false),
    },
    backOff: { minMs: 1, maxMs: 2 },
    waitsMs: { standBy: 5, idle: 5, takeover: options.takeover ?? 50 },
  });

  const command = (merchantId: string, requested: EndpointCommand) =>
    handleEndpointCommand(store, { merchantId, command: requested, context: CONTEXT });
  const register = (merchantId = MERCHANT, url = 'https://shop.example/hook') =>
    registerEndpoint(store, merchantId, url);
  /** Appends the first `length` events of a payment's whole life. */
  const pay = async (paymentId: string, length = 2, merchantId = MERCHANT): Promise<void> => {
    const events = wholeLife(paymentId, merchantId).slice(0, length);
    await appendPayment(store, paymentId, events, () => new Date(nowMs()).toISOString());
  };
  return Object.assign(world, {
    ...{ store, deliveries, clock, nowMs, sent, lines, infos, deliverer, command, register, pay },
    [Symbol.asyncDispose]: () => deliverer.stop(),
  });
};
