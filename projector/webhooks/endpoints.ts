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

/** For one start: the log may be another one at the next. `restart` is called when a loop fails. */
export const openEndpoints = (
  options: EndpointsOptions,
  { secret, from }: { secret: string; from: Position | null },
  restart: () => void,
) => {
  const { store, deliveries, sender, disable, logger, nowMs = Date.now } = options;
  type Owned = { merchantId: string };
  const loops = new Map<string, Owned & { loop: EndpointLoop; end: AbortController }>();
  /** An endpoint by its id, all of a merchant's by their stream. */
  const halted = new Map<string, Owned>();
  const merchants = new Map<string, string>();
  const served = new Set<string>();
  let isOver = false;
  const messages = createMessages(store);
  const feed = createLogFeed({
    store,
    from,
    onPayment: (event, merchantId) => (served.has(merchantId) ? messages.keep(event) : undefined),
  });
  const deps: LoopDeps = {
    ...{ feed, messages, sender, secret, logger, disable, nowMs },
    places: createPlaces(),
    onAttempt: options.onAttempt ?? (() => undefined),
    startTimer: options.startTimer ?? startTimer,
    random: options.random ?? Math.random,
  };

  /** Nothing is sent from a log that does not fit what was sent. */
  const fitsLog = async (endpoint: Endpoint, { checkpoint, hash }: DeliveryRow) => {
    const { endpointId, merchantId } = endpoint;
    const misfit = await misfitOf(store, checkpoint, hash);
    if (misfit === undefined) return true;
    halted.set(endpointId, { merchantId });
    logger.error(
      { endpointId, checkpoint },
      `webhook endpoint halted: the event log ${misfit} what was sent; put the right log back, or resume the endpoint from now`,
    );
    return false;
  };

  const startLoop = async (endpoint: Endpoint, events: readonly RecordedEvent[]): Promise<void> => {
    const { endpointId, merchantId } = endpoint;
    const born = events.findIndex(
      ({ event }) =>
        event.type === 'WebhookEndpointCreated' && event.data.endpointId === endpointId,
    );
    const row = await takeRow(deliveries, endpoint, born);
    const delivery = followCommands(deliveryOf(row.value()), endpoint, events, nowMs());
    halted.delete(endpointId);
    if (!(await fitsLog(endpoint, delivery.row)) || isOver) return;
    const end = new AbortController();
    const loop = startEndpointLoop(endpoint, delivery, row, deps, end.signal);
    loops.set(endpointId, { merchantId, loop, end });
    loop.ended.catch((error: unknown) => {
      if (loops.get(endpointId)?.loop !== loop) return;
      logger.warn(
        { endpointId, reason: reasonOf(error) },
        'webhook delivery interrupted: it starts again',
      );
      restart();
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
    if (isOver) return;
    const stream = endpointStreamOf(merchantId);
    merchants.set(stream, merchantId);
    halted.delete(stream);
    const here = [...loops, ...halted]
      .filter(([, owned]) => owned.merchantId === merchantId)
      .map(([id]) => id);
    const found = await readableEndpoints(store, merchantId, (reason) =>
      logger.error(
        { stream, merchant: merchantId, reason },
        'webhook endpoints of a merchant halted: their events cannot be read; put the right log back',
      ),
    );
    if (found === undefined) {
      await Promise.all(here.map(endLoop));
      served.delete(merchantId);
      halted.set(stream, { merchantId });
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

  const merchantOf = (event: LogEvent): string | undefined => {
    const known = merchants.get(event.stream);
    if (known !== undefined || !event.stream.startsWith(WEBHOOK_STREAMS)) return known;
    return 'event' in event && event.event.type === 'WebhookEndpointCreated'
      ? event.event.data.merchantId
      : undefined;
  };

  return {
    follow,
    /** Throws what the engines throw. */
    events: async (events: readonly LogEvent[]): Promise<void> => {
      await feed.add(events);
      const changed = new Set(events.map(merchantOf));
      for (const merchantId of changed) if (merchantId !== undefined) await follow(merchantId);
    },
    status: () =>
      endpointsStatus(
        [...loops.values()].map(({ loop }) => loop.status()),
        halted.size,
      ),
    end: async (): Promise<void> => {
      isOver = true;
      halted.clear();
      await Promise.all([...loops.keys()].map(endLoop));
    },
  };
};

export type Endpoints = ReturnType<typeof openEndpoints>;
