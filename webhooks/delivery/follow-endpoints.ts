/** The endpoints that the deliverer serves, with a loop for each. */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import type { LogEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import { WEBHOOK_STREAMS } from '../../shared/payment/webhook-events.ts';
import { startTimer } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import { misfitOf } from '../../shared/subscription/subscription.ts';
import { merchantsWithEndpoints, readableEndpoints } from '../endpoints/endpoint-log.ts';
import { type Endpoint, endpointStreamOf } from '../endpoints/endpoints.ts';
import { rowStatus } from './delivery-row.ts';
import {
  type EndpointLoop,
  endWait,
  type LoopDeps,
  openLoop,
  runLoop,
  updateLoop,
} from './endpoint-loop.ts';
import { addToFeed, createLogFeed, portionOf } from './log-feed.ts';
import { createPlaces, type SendDeps } from './send-item.ts';

type Clock = 'nowMs' | 'startTimer' | 'random';

export type EndpointsOptions = Omit<SendDeps, Clock | 'places'> & Partial<Pick<SendDeps, Clock>>;

type Merchant = {
  merchantId: string;
  /** Of its endpoints. */
  stream: string;
  loops: Map<string, EndpointLoop>;
  /** Its events cannot be read, so none of its endpoints is served. */
  isHalted: boolean;
};

const newMerchant = (merchantId: string): Merchant => {
  const stream = endpointStreamOf(merchantId);
  return { merchantId, stream, loops: new Map(), isHalted: false };
};

const loopsOf = ({ loops }: Merchant): EndpointLoop[] => [...loops.values()];

export type EndpointsStatus = {
  /** `HALTED`: the log does not fit what was sent. A merchant whose events cannot be read counts as one. */
  endpoints: Record<ReturnType<typeof rowStatus> | 'HALTED', number>;
  /** Of the oldest event that an enabled endpoint has not accepted. */
  oldestWaitingMs: number | null;
};

/** Deliveries from their begin to a failure or a stop. */
export type Delivering = {
  status(): EndpointsStatus;
  /** Rejects where they failed. */
  ended: Promise<unknown>;
  stop(): Promise<void>;
};

export const endpointsStatus = (merchants: readonly Merchant[]): EndpointsStatus => {
  const halted = merchants.filter(({ isHalted }) => isHalted).length;
  const endpoints = { ENABLED: 0, FAILING: 0, DISABLED: 0, HALTED: halted };
  const waits: number[] = [];
  for (const { endpoint, delivery, isHalted } of merchants.flatMap(loopsOf)) {
    const status = isHalted ? 'HALTED' : rowStatus(endpoint, delivery.row);
    const { oldestWaiting } = delivery.row;
    endpoints[status] += 1;
    if (oldestWaiting !== null && (status === 'ENABLED' || status === 'FAILING'))
      waits.push(oldestWaiting);
  }
  return { endpoints, oldestWaitingMs: waits.length === 0 ? null : Math.min(...waits) };
};

type Serving = {
  deps: LoopDeps;
  /** By their ids. */
  merchants: Map<string, Merchant>;
  leaving: AbortSignal;
  fail(error: unknown): void;
};

/** Nothing is sent from a log that does not fit what was sent. */
const haltOnMisfit = async (loop: EndpointLoop, { store, logger }: LoopDeps): Promise<void> => {
  const { endpointId } = loop.endpoint;
  const { checkpoint, hash } = loop.delivery.row;
  const misfit = await misfitOf(store, checkpoint, hash);
  if (misfit === undefined) return;
  loop.isHalted = true;
  logger.error(
    { endpointId, checkpoint },
    `webhook endpoint halted: the event log ${misfit} what was sent; put the right log back, or resume the endpoint from now`,
  );
};

const startLoop = async (
  { deps, leaving, fail }: Serving,
  { loops }: Merchant,
  endpoint: Endpoint,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const { endpointId } = endpoint;
  const loop = await openLoop(endpoint, events, deps);
  await haltOnMisfit(loop, deps);
  if (leaving.aborted) return;
  loops.set(endpointId, loop);
  if (loop.isHalted) return;
  loop.ended = runLoop(loop, deps);
  loop.ended.catch((error: unknown) => {
    if (loops.get(endpointId) === loop) fail(error);
  });
};

const endLoop = async ({ loops }: Merchant, loop: EndpointLoop): Promise<void> => {
  loops.delete(loop.endpoint.endpointId);
  loop.end.abort();
  await loop.ended.catch(() => undefined);
};

const endLoops = (merchant: Merchant): Promise<unknown> =>
  Promise.all(loopsOf(merchant).map((loop) => endLoop(merchant, loop)));

/** Throws what the engines throw. */
const serveMerchant = async (serving: Serving, merchantId: string): Promise<void> => {
  const { deps, merchants, leaving } = serving;
  if (leaving.aborted) return;
  const merchant = merchants.get(merchantId) ?? newMerchant(merchantId);
  const { stream } = merchant;
  merchants.set(merchantId, merchant);
  const found = await readableEndpoints(deps.store, merchantId);
  merchant.isHalted = found instanceof UnreadableStream;
  if (found instanceof UnreadableStream) {
    deps.logger.error(
      { stream, merchant: merchantId, reason: reasonOf(found) },
      'webhook endpoints of a merchant halted: their events cannot be read; put the right log back',
    );
    await endLoops(merchant);
    return;
  }
  const { endpoints, events } = found;
  for (const endpoint of endpoints) {
    const loop = merchant.loops.get(endpoint.endpointId);
    if (loop === undefined || loop.isHalted) await startLoop(serving, merchant, endpoint, events);
    else updateLoop(loop, endpoint, events, deps);
  }
  const known = new Set(endpoints.map(({ endpointId }) => endpointId));
  for (const [endpointId, loop] of merchant.loops) {
    if (known.has(endpointId)) continue;
    await endLoop(merchant, loop);
    await deps.deliveries.remove(endpointId);
  }
};

const merchantOf = ({ merchants }: Serving, event: LogEvent): string | undefined => {
  if (!event.stream.startsWith(WEBHOOK_STREAMS)) return undefined;
  const known = [...merchants.values()].find(({ stream }) => stream === event.stream);
  if (known !== undefined) return known.merchantId;
  if (!('event' in event)) return undefined;
  return event.event.type === 'WebhookEndpointCreated' ? event.event.data.merchantId : undefined;
};

/** Endpoints first: what follows in a batch may be no longer for one. Throws what the engines throw. */
const followBatch = async (serving: Serving, events: readonly LogEvent[]): Promise<void> => {
  const { merchants, deps } = serving;
  const changed = new Set(events.map((event) => merchantOf(serving, event)));
  for (const merchantId of changed)
    if (merchantId !== undefined) await serveMerchant(serving, merchantId);
  const portion = await portionOf(deps.feed, events);
  if (portion === undefined) return;
  for (const merchantId of new Set(portion.facts.map((fact) => fact.merchantId))) {
    const loops = merchants.get(merchantId)?.loops.values() ?? [];
    for (const loop of loops) endWait(loop, deps.feed);
  }
  addToFeed(deps.feed, portion, events.length);
};

/** To a failure or a stop. It follows the log, and not the read models: their rebuild sends nothing. */
export const deliver = (options: EndpointsOptions): Delivering => {
  const { store } = options;
  const leaving = new AbortController();
  const failed = Promise.withResolvers<never>();
  const deps: LoopDeps = {
    nowMs: Date.now,
    startTimer,
    random: Math.random,
    ...options,
    feed: createLogFeed(store),
    places: createPlaces(),
  };
  const merchants: Serving['merchants'] = new Map();
  const serving = { deps, merchants, leaving: leaving.signal, fail: failed.reject };

  const run = async (): Promise<void> => {
    const from = await store.end();
    deps.feed.head = { position: from, hash: null };
    for (const merchantId of await merchantsWithEndpoints(store))
      await serveMerchant(serving, merchantId);
    for await (const item of store.subscribe(from, leaving.signal))
      if (item.kind === 'events') await followBatch(serving, item.events);
    if (!leaving.signal.aborted) throw new Error('the subscription ended');
  };
  const running = run();

  return {
    status: () => endpointsStatus([...merchants.values()]),
    ended: Promise.race([running, failed.promise]),
    stop: async () => {
      leaving.abort();
      await Promise.all([...merchants.values()].map(endLoops));
      await running.catch(() => undefined);
      await options.sender.close();
    },
  };
};
