/** The endpoints that the deliverer serves, with a loop for each. */
import type {
  EventStore,
  LogEvent,
  Position,
  RecordedEvent,
} from '../../shared/event-store/port.ts';
import { WEBHOOK_STREAMS } from '../../shared/payment/webhook-events.ts';
import { type StartTimer, startTimer } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Attempt, DeliveryRow } from '../../shared/webhooks/delivery-row.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import { readableEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import { type Endpoint, endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import { misfitOf } from '../log-check.ts';
import { followCommands } from './commands.ts';
import { deliveryOf } from './delivery.ts';
import { type EndpointLoop, type LoopDeps, startEndpointLoop, takeRow } from './endpoint-loop.ts';
import { createLogFeed } from './log-feed.ts';
import { createMessages } from './messages.ts';
import { createPlaces } from './permits.ts';
import type { SendDeps } from './send-item.ts';
import { endpointsStatus } from './status.ts';

export type EndpointsOptions = Pick<SendDeps, 'sender' | 'disable' | 'logger'> & {
  store: Pick<EventStore, 'readStream' | 'readAll' | 'end' | 'hashAt'>;
  deliveries: DeliveryStore;
  onAttempt?(attempt: Attempt): void;
  nowMs?(): number;
  startTimer?: StartTimer;
  random?(): number;
};

type Running = { loop: EndpointLoop; end: AbortController };

type Merchant = {
  /** Of its endpoints' events. */
  stream: string;
  /** By the endpoint's id; `halted`: its log does not fit what was sent. */
  endpoints: Map<string, Running | 'halted'>;
  /** Its events cannot be read, so none of its endpoints is served. */
  isHalted: boolean;
  /** It has an endpoint that is not disabled. */
  isServed: boolean;
};

type Serving = {
  store: EndpointsOptions['store'];
  deliveries: DeliveryStore;
  deps: LoopDeps;
  merchants: Map<string, Merchant>;
  /** The merchant's id by the stream of its endpoints. */
  streams: Map<string, string>;
  isOver: boolean;
  restart(): void;
};

/** Nothing is sent from a log that does not fit what was sent. */
const fitsLog = async ({ store, deps }: Serving, endpointId: string, row: DeliveryRow) => {
  const { checkpoint, hash } = row;
  const misfit = await misfitOf(store, checkpoint, hash);
  if (misfit === undefined) return true;
  deps.logger.error(
    { endpointId, checkpoint },
    `webhook endpoint halted: the event log ${misfit} what was sent; put the right log back, or resume the endpoint from now`,
  );
  return false;
};

const startLoop = async (
  serving: Serving,
  { endpoints }: Merchant,
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const { deliveries, deps, restart } = serving;
  const { endpointId } = endpoint;
  const born = events.findIndex(
    ({ event }) => event.type === 'WebhookEndpointCreated' && event.data.endpointId === endpointId,
  );
  const row = await takeRow(deliveries, endpoint, born);
  const delivery = followCommands(deliveryOf(row.value()), endpoint, events, deps.nowMs());
  if (!(await fitsLog(serving, endpointId, delivery.row))) {
    endpoints.set(endpointId, 'halted');
    return;
  }
  if (serving.isOver) return;
  const end = new AbortController();
  const loop = startEndpointLoop(endpoint, delivery, row, deps, end.signal);
  const running = { loop, end };
  endpoints.set(endpointId, running);
  loop.ended.catch((error: unknown) => {
    if (endpoints.get(endpointId) !== running) return;
    const reason = reasonOf(error);
    deps.logger.warn({ endpointId, reason }, 'webhook delivery interrupted: it starts again');
    restart();
  });
};

const endLoop = async ({ endpoints }: Merchant, endpointId: string): Promise<void> => {
  const running = endpoints.get(endpointId);
  endpoints.delete(endpointId);
  if (running === undefined || running === 'halted') return;
  running.end.abort();
  await running.loop.ended.catch(() => undefined);
};

const endLoops = (merchant: Merchant): Promise<unknown> =>
  Promise.all([...merchant.endpoints.keys()].map((id) => endLoop(merchant, id)));

const merchantIn = ({ merchants, streams }: Serving, merchantId: string): Merchant => {
  const known = merchants.get(merchantId);
  if (known !== undefined) return known;
  const stream = endpointStreamOf(merchantId);
  const added = { stream, endpoints: new Map(), isHalted: false, isServed: false };
  merchants.set(merchantId, added);
  streams.set(stream, merchantId);
  return added;
};

const follow = async (serving: Serving, merchantId: string): Promise<void> => {
  if (serving.isOver) return;
  const { store, deliveries, deps } = serving;
  const merchant = merchantIn(serving, merchantId);
  const found = await readableEndpoints(store, merchantId, (reason) =>
    deps.logger.error(
      { stream: merchant.stream, merchant: merchantId, reason },
      'webhook endpoints of a merchant halted: their events cannot be read; put the right log back',
    ),
  );
  merchant.isHalted = found === undefined;
  merchant.isServed = found?.endpoints.some(({ disabled }) => disabled === undefined) === true;
  if (found === undefined) {
    await endLoops(merchant);
    return;
  }
  const { endpoints, events } = found;
  for (const endpoint of endpoints) {
    const running = merchant.endpoints.get(endpoint.endpointId);
    if (running === undefined || running === 'halted')
      await startLoop(serving, merchant, endpoint, events);
    else running.loop.update(endpoint, events);
  }
  const known = new Set(endpoints.map(({ endpointId }) => endpointId));
  for (const endpointId of merchant.endpoints.keys()) {
    if (known.has(endpointId)) continue;
    await endLoop(merchant, endpointId);
    await deliveries.remove(endpointId);
  }
};

const merchantOf = ({ streams }: Serving, event: LogEvent): string | undefined => {
  const known = streams.get(event.stream);
  if (known !== undefined) return known;
  if (!event.stream.startsWith(WEBHOOK_STREAMS) || !('event' in event)) return undefined;
  return event.event.type === 'WebhookEndpointCreated' ? event.event.data.merchantId : undefined;
};

const statusOf = ({ merchants }: Serving) => {
  const all = [...merchants.values()];
  const endpoints = all.flatMap((one) => [...one.endpoints.values()]);
  const running = endpoints.filter((one) => one !== 'halted');
  const halted = endpoints.length - running.length + all.filter((one) => one.isHalted).length;
  return endpointsStatus(
    running.map(({ loop }) => loop.status()),
    halted,
  );
};

/** For one start: the log may be another one at the next. `restart` is called when a loop fails. */
export const openEndpoints = (
  options: EndpointsOptions,
  { secret, from }: { secret: string; from: Position | null },
  restart: () => void,
) => {
  const { store, deliveries, sender, disable, logger, nowMs = Date.now } = options;
  const merchants = new Map<string, Merchant>();
  const messages = createMessages(store);
  const feed = createLogFeed({
    store,
    from,
    onPayment: (event, merchantId) =>
      merchants.get(merchantId)?.isServed ? messages.keep(event) : undefined,
  });
  const deps: LoopDeps = {
    ...{ feed, messages, sender, secret, logger, disable, nowMs },
    places: createPlaces(),
    onAttempt: options.onAttempt ?? (() => undefined),
    startTimer: options.startTimer ?? startTimer,
    random: options.random ?? Math.random,
  };
  const serving: Serving = {
    ...{ store, deliveries, deps, merchants, restart },
    streams: new Map(),
    isOver: false,
  };
  return {
    follow: (merchantId: string) => follow(serving, merchantId),
    /** Throws what the engines throw. */
    events: async (events: readonly LogEvent[]): Promise<void> => {
      await feed.add(events);
      const changed = new Set(events.map((event) => merchantOf(serving, event)));
      for (const merchantId of changed)
        if (merchantId !== undefined) await follow(serving, merchantId);
    },
    status: () => statusOf(serving),
    end: async (): Promise<void> => {
      serving.isOver = true;
      await Promise.all([...merchants.values()].map(endLoops));
    },
  };
};

export type Endpoints = ReturnType<typeof openEndpoints>;
