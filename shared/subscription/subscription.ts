/** The catch-up loop, through which the projector and the relay follow the log. */
import type { EventStore, LogEvent, Position, SubscriptionItem } from '../event-store/port.ts';
import type { ReadModels } from '../read-models/port.ts';
import { type BackOff, backOffMs, pause } from '../runtime/back-off.ts';
import { reasonOf } from '../runtime/error-text.ts';
import type { Logger } from '../runtime/log.ts';
import { AppliedLogMisfit, LogMisfit } from './errors.ts';

/** Where one of these throws, the loop starts again, unless the error `halts` it. */
export type Subscriber = {
  start(): Promise<Position | null>;
  /** After `start`: once it aborts, the loop starts again. */
  until?(): AbortSignal;
  events(events: (SubscriptionItem & { kind: 'events' })['events']): Promise<void>;
  /** The stream was deleted or cut past the service, or may have been. */
  removal?(stream: string): Promise<void>;
  caughtUp(): void | Promise<void>;
  /** True where the log is followed no more until an operator acts. */
  halts?(error: unknown): boolean;
};

type SubscriptionState = 'starting' | 'running' | 'backing-off' | 'halted' | 'stopped';

type SubscriptionOptions = {
  store: Pick<EventStore, 'subscribe'>;
  subscriber: Subscriber;
  logger: Logger;
  backOff?: BackOff | undefined;
};

export const SUBSCRIPTION_INTERRUPTED =
  'subscription interrupted: it starts again from the checkpoint until it succeeds';

/**
 * Follows the log from the subscriber's checkpoint. After any error or end it waits (bounded, with jitter) and
 * starts again there, so an engine out of reach loses no event and parks no payment.
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

  /** Returns why it ended. Throws what the subscriber and the store throw. */
  const followLog = async (): Promise<string> => {
    leaving = new AbortController();
    const from = await subscriber.start();
    const until = subscriber.until?.() ?? leaving.signal;
    const signal = AbortSignal.any([stopping.signal, leaving.signal, until]);
    for await (const item of store.subscribe(from, signal)) {
      if (signal.aborted) break;
      if (item.kind === 'events') await subscriber.events(item.events);
      else if (item.kind === 'removal') await subscriber.removal?.(item.stream);
      else await subscriber.caughtUp();
      progressed();
    }
    return signal.aborted ? 'restart requested' : 'the subscription ended';
  };

  const wait = async (reason: string): Promise<void> => {
    status.state = 'backing-off';
    status.error = reason;
    status.restarts += 1;
    const waitMs = backOffMs(backOff, failures);
    failures += 1;
    if (reason !== warnedOf) logger.warn({ reason, waitMs }, SUBSCRIPTION_INTERRUPTED);
    warnedOf = reason;
    await pause(waitMs, stopping.signal);
  };

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      let isHalted = false;
      const reason = await followLog().catch((error: unknown) => {
        isHalted = subscriber.halts?.(error) === true;
        return reasonOf(error);
      });
      if (isHalted) return void Object.assign(status, { state: 'halted', error: reason });
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

/** Over the whole log up to the event, where the store keeps that; null for an unreadable event. */
export const checkpointHashOf = (event: LogEvent): string | null => {
  if (event.logHash !== undefined) return event.logHash;
  return 'unreadable' in event ? null : event.hash;
};

/** Returns a log hash that is carried, not stored; undefined when no event is there. */
type LogHashAt = (position: Position) => Promise<string | undefined>;

/** Undefined: it fits; else followed events are lost or written anew. Throws StoreUnavailable. */
export const misfitOf = async (
  store: Pick<EventStore, 'end' | 'readAll' | 'hashAt'>,
  checkpoint: Position | null,
  hash: string | null,
  carried?: LogHashAt,
): Promise<'ends before' | 'has other events up to' | undefined> => {
  if (checkpoint === null) return undefined;
  const at = await store.hashAt(checkpoint);
  const end = await store.end();
  // A thread that follows the log learns of its end a moment after the file has the event.
  const isBefore =
    at === null && end !== checkpoint && (await store.readAll(checkpoint, 1, end)).length === 0;
  if (isBefore) return 'ends before';
  if (hash === null) return undefined;
  // Earlier versions kept the hash of the event alone.
  if (at?.logHash === hash || at?.hash === hash) return undefined;
  const isCarried = at !== null && (await carried?.(checkpoint)) === hash;
  return isCarried ? undefined : 'has other events up to';
};

type Engines = {
  store: EventStore;
  readModels: Pick<ReadModels, 'checkpoint' | 'checkpointHash'>;
  /** Left out where the store keeps the log hashes itself, or nothing is sealed. */
  running?: { logHashAt: LogHashAt } | undefined;
};

/** Throws LogMisfit where the log does not fit the read models' checkpoint, and what the engines throw. */
export const rejectMisfit = async (
  { store, readModels, running }: Engines,
  checkpoint: Position | null,
): Promise<void> => {
  const hash = checkpoint === null ? null : await readModels.checkpointHash(checkpoint);
  const misfit = await misfitOf(store, checkpoint, hash, running?.logHashAt);
  if (misfit === undefined) return;
  throw new AppliedLogMisfit(
    `the event log ${misfit} the read models' checkpoint (${checkpoint}): it was changed, cut, or restored from another copy; put the right log back, or, where this log is the right one, delete the read models, and no other file or collection, to fill them from it`,
  );
};

/** An engine out of reach is no error: the catch-up loop checks again. Throws LogMisfit. */
export const checkBeforeStart = async (engines: Engines): Promise<void> => {
  try {
    await rejectMisfit(engines, await engines.readModels.checkpoint());
  } catch (error) {
    if (error instanceof LogMisfit) throw error;
  }
};
