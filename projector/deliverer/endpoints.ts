/** The endpoints that the deliverer serves, with a loop for each. */
import type {
  EventStore,
  LogEvent,
  Position,
  RecordedEvent,
} from '../../shared/event-store/port.ts';
import { WEBHOOK_STREAMS } from '../../shared/payment/webhook-events.ts';
import { startTimer } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { readableEndpoints } from '../../shared/webhooks/endpoint-log.ts';
import { type Endpoint, endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import { misfitOf } from '../subscription.ts';
import {
  type EndpointLoop,
  type LoopDeps,
  leaveHead,
  openLoop,
  runLoop,
  updateLoop,
} from './endpoint-loop.ts';
import { addToFeed, createLogFeed, portionOf } from './log-feed.ts';
import { createPlaces } from './permits.ts';
import { endpointsStatus } from './status.ts';

type ServingDeps = LoopDeps & {
  store: Pick<EventStore, 'readStream' | 'readAll' | 'end' | 'hashAt'>;
};
type Clock = 'nowMs' | 'startTimer' | 'random';

export type EndpointsOptions = Omit<ServingDeps, Clock | 'feed' | 'places' | 'secret'> &
  Partial<Pick<ServingDeps, Clock>>;

type Merchant = {
  merchantId: string;
  /** By the endpoint's id; `halted`: its log does not fit what was sent. */
  endpoints: Map<string, EndpointLoop | 'halted'>;
  /** Its events cannot be read, so none of its endpoints is served. */
  isHalted: boolean;
};

export type Serving = {
  deps: ServingDeps;
  /** By the stream of their endpoints. */
  merchants: Map<string, Merchant>;
  isOver: boolean;
  restart(): void;
};

/** Nothing is sent from a log that does not fit what was sent. */
const fitsLog = async (
  { endpoint, delivery }: EndpointLoop,
  { store, logger }: Serving['deps'],
) => {
  const { endpointId } = endpoint;
  const { checkpoint, hash } = delivery.row;
  const misfit = await misfitOf(store, checkpoint, hash);
  if (misfit === undefined) return true;
  logger.error(
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
  const { deps, restart } = serving;
  const { endpointId } = endpoint;
  const loop = await openLoop(endpoint, events, deps);
  if (!(await fitsLog(loop, deps))) {
    endpoints.set(endpointId, 'halted');
    return;
  }
  if (serving.isOver) return;
  endpoints.set(endpointId, loop);
  loop.ended = runLoop(loop, deps);
  loop.ended.catch((error: unknown) => {
    if (endpoints.get(endpointId) !== loop) return;
    const reason = reasonOf(error);
    deps.logger.warn({ endpointId, reason }, 'webhook delivery interrupted: it starts again');
    restart();
  });
};

const endLoop = async ({ endpoints }: Merchant, endpointId: string): Promise<void> => {
  const loop = endpoints.get(endpointId);
  endpoints.delete(endpointId);
  if (loop === undefined || loop === 'halted') return;
  loop.end.abort();
  await loop.ended.catch(() => undefined);
};

const endLoops = (merchant: Merchant): Promise<unknown> =>
  Promise.all([...merchant.endpoints.keys()].map((id) => endLoop(merchant, id)));

/** Throws what the engines throw. */
export const follow = async (serving: Serving, merchantId: string): Promise<void> => {
  if (serving.isOver) return;
  const { deps, merchants } = serving;
  const stream = endpointStreamOf(merchantId);
  const merchant = merchants.get(stream) ?? { merchantId, endpoints: new Map(), isHalted: false };
  merchants.set(stream, merchant);
  const found = await readableEndpoints(deps.store, merchantId, (reason) =>
    deps.logger.error(
      { stream, merchant: merchantId, reason },
      'webhook endpoints of a merchant halted: their events cannot be read; put the right log back',
    ),
  );
  merchant.isHalted = found === undefined;
  if (found === undefined) {
    await endLoops(merchant);
    return;
  }
  const { endpoints, events } = found;
  for (const endpoint of endpoints) {
    const loop = merchant.endpoints.get(endpoint.endpointId);
    if (loop === undefined || loop === 'halted')
      await startLoop(serving, merchant, endpoint, events);
    else updateLoop(loop, endpoint, events, deps);
  }
  const known = new Set(endpoints.map(({ endpointId }) => endpointId));
  for (const endpointId of merchant.endpoints.keys()) {
    if (known.has(endpointId)) continue;
    await endLoop(merchant, endpointId);
    await deps.deliveries.remove(endpointId);
  }
};

const merchantOf = ({ merchants }: Serving, event: LogEvent): string | undefined => {
  const known = merchants.get(event.stream);
  if (known !== undefined) return known.merchantId;
  if (!event.stream.startsWith(WEBHOOK_STREAMS) || !('event' in event)) return undefined;
  return event.event.type === 'WebhookEndpointCreated' ? event.event.data.merchantId : undefined;
};

export const statusOf = ({ merchants }: Serving) => {
  const all = [...merchants.values()];
  const loops = all.flatMap(loopsOf);
  const count = all.reduce((sum, { endpoints }) => sum + endpoints.size, 0);
  const halted = count - loops.length + all.filter((one) => one.isHalted).length;
  return endpointsStatus(loops, halted);
};

/** For one start: the log may be another one at the next. `restart` is called when a loop fails. */
export const openServing = (
  { store, deliveries, sender, disable, logger, onAttempt, ...clock }: EndpointsOptions,
  { secret, from }: { secret: string; from: Position | null },
  restart: () => void,
): Serving => {
  const { nowMs = Date.now, startTimer: timer = startTimer, random = Math.random } = clock;
  const deps = {
    ...{ store, deliveries, sender, secret, logger, disable, onAttempt, nowMs, random },
    feed: createLogFeed(store, from),
    places: createPlaces(),
    startTimer: timer,
  };
  return { deps, merchants: new Map(), isOver: false, restart };
};

const loopsOf = ({ endpoints }: Merchant): EndpointLoop[] =>
  [...endpoints.values()].filter((one) => one !== 'halted');

/** Throws what the engines throw. */
export const followLog = async (serving: Serving, events: readonly LogEvent[]): Promise<void> => {
  const { merchants, deps } = serving;
  const portion = await portionOf(deps.feed, events);
  if (portion === undefined) return;
  for (const merchantId of new Set(portion.facts.map((fact) => fact.merchantId))) {
    const merchant = merchants.get(endpointStreamOf(merchantId));
    for (const loop of merchant === undefined ? [] : loopsOf(merchant)) leaveHead(loop, deps.feed);
  }
  addToFeed(deps.feed, portion, events.length);
  const changed = new Set(events.map((event) => merchantOf(serving, event)));
  for (const merchantId of changed) if (merchantId !== undefined) await follow(serving, merchantId);
};

export const endServing = async (serving: Serving | undefined): Promise<void> => {
  if (serving === undefined) return;
  serving.isOver = true;
  await Promise.all([...serving.merchants.values()].map(endLoops));
};
