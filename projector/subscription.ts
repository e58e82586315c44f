/** The catch-up loop, through which the projector, the relay and the deliverer follow the log. */
import type { EventStore, Position, SubscriptionItem } from '../shared/event-store/port.ts';
import { type BackOff, backOffMs, pause } from '../shared/runtime/back-off.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/log.ts';

/** Where one of these throws, the loop starts again. */
export type Subscriber = {
  start(): Promise<Position | null>;
  events(events: (SubscriptionItem & { kind: 'events' })['events']): Promise<void>;
  /** The stream was deleted or cut past the service, or may have been. */
  removal?(stream: string): Promise<void>;
  caughtUp(): void | Promise<void>;
};

export type SubscriptionState = 'starting' | 'running' | 'backing-off' | 'stopped';

export type SubscriptionOptions = {
  store: Pick<EventStore, 'subscribe'>;
  subscriber: Subscriber;
  logger: Logger;
  backOff?: BackOff | undefined;
};

/**
 * Follows the log from the subscriber's own checkpoint. After any error and any end the loop waits
 * (bounded, with jitter) and starts again from there, so an engine out of reach loses no event and parks no
 * payment.
 */
export const runSubscription = ({
  store,
  subscriber,
  logger,
  backOff = { minMs: 100, maxMs: 5000 },
}: SubscriptionOptions) => {
  const stopping = new AbortController();
  const status: { state: SubscriptionState; error?: string; restarts: number } = {
    state: 'starting',
    restarts: 0,
  };
  let leaving = new AbortController();
  let failures = 0;
  let warnedOf: string | undefined;

  const progressed = (): void => {
    status.state = 'running';
    delete status.error;
    failures = 0;
    warnedOf = undefined;
  };

  const followLog = async (): Promise<void> => {
    leaving = new AbortController();
    const signal = AbortSignal.any([stopping.signal, leaving.signal]);
    const from = await subscriber.start();
    for await (const item of store.subscribe(from, signal)) {
      if (signal.aborted) return;
      if (item.kind === 'events') await subscriber.events(item.events);
      else if (item.kind === 'removal') await subscriber.removal?.(item.stream);
      else await subscriber.caughtUp();
      progressed();
    }
  };

  const wait = async (reason: string): Promise<void> => {
    status.state = 'backing-off';
    status.error = reason;
    status.restarts += 1;
    const waitMs = backOffMs(backOff, failures);
    failures += 1;
    if (reason !== warnedOf)
      logger.warn(
        { reason, waitMs },
        'subscription interrupted: it starts again from the checkpoint until it succeeds',
      );
    warnedOf = reason;
    await pause(waitMs, stopping.signal);
  };

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const reason = await followLog().then(
        () => (leaving.signal.aborted ? 'restart requested' : 'the subscription ended'),
        reasonOf,
      );
      if (!stopping.signal.aborted) await wait(reason);
    }
    status.state = 'stopped';
  };
  const ended = loop();

  return {
    status: () => ({ ...status }),
    restart: (): void => leaving.abort(),
    stop: (): Promise<void> => {
      stopping.abort();
      return ended;
    },
  };
};

export type Subscription = ReturnType<typeof runSubscription>;
