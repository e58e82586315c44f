/**
 * The relay: follows the log and sends each event of a payment, the state after it, and each seal to the
 * feed. After a fault the same messages are sent again, to the byte; commands and reads never wait for it.
 * An event that cannot be read parks its own payment: no later event of it is sent, so no reader meets a
 * gap. It is tried again once the relay has caught up after each start, and on request.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import type { KeyDocument } from '../../shared/key-document.ts';
import type { BackOff } from '../../shared/runtime/back-off.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import { RelayHalted, RelayNotReady, StandingBy } from '../errors.ts';
import { type EventFeed, type Partitions, TOPICS } from '../event-feed/port.ts';
import { createLag, type Lag } from '../lag.ts';
import { misfitOf } from '../log-check.ts';
import { runSubscription, type Subscription } from '../subscription.ts';
import { createTurns } from '../turns.ts';
import { openOwnCheckpoint, type RelayCheckpoint } from './checkpoint.ts';
import { createPublisher, type Publisher } from './publisher.ts';
import type { Retried } from './send-parked.ts';
import { type RelayStatus, stateOf } from './status.ts';

export type RelayOptions = {
  store: Pick<EventStore, 'subscribe' | 'readStream' | 'readAll' | 'end' | 'head' | 'hashAt'>;
  feed: EventFeed;
  checkpoint: KeyDocument;
  logger: Logger;
  mayRun?: () => boolean;
  backOff?: BackOff;
  waitsMs?: Partial<typeof WAITS_MS>;
};

export type Relay = {
  status(): RelayStatus;
  /** Undefined when off. Throws StoreUnavailable. */
  lag(): Promise<Lag | undefined>;
  partitions(): Partitions | undefined;
  /** By paymentId. Throws RelayNotReady. */
  parked(): Promise<RelayCheckpoint['parked']>;
  /** Tries one parked payment, or up to RETRIED_MAX of them. Throws StandingBy and RelayNotReady. */
  retryParked(paymentId?: string): Promise<Retried[]>;
  /** Resolves within a few seconds, whatever the broker does. */
  stop(): Promise<void>;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  /** After so long without a response the relay counts as backing off. */
  silence: 5_000,
  /** Between two looks at the topics' partition counts. */
  recheck: 60_000,
  stop: 2_000,
};

/** Each takes some 10 ms, and batches wait meanwhile. */
export const RETRIED_MAX = 100;

const throwUnread = (error: unknown): never => {
  throw new RelayNotReady(`the checkpoint of the relay cannot be read: ${reasonOf(error)}`);
};

const rejectMisfit = async (
  store: Pick<EventStore, 'end' | 'readAll' | 'hashAt'>,
  { position, hash }: RelayCheckpoint,
): Promise<void> => {
  const misfit = await misfitOf(store, position, hash);
  if (misfit === undefined) return;
  throw new RelayHalted(
    `the event log ${misfit} the checkpoint of the relay (${position}): it was changed, cut, or restored from another copy, and the topics hold events that it does not; put the right log back`,
  );
};

const rejectChange = (known: Partitions, found: Partitions): void => {
  for (const topic of TOPICS) {
    if (known[topic] === found[topic]) continue;
    throw new RelayHalted(
      `the ${topic} topic has ${found[topic]} partitions and had ${known[topic]}: payments would change their partition and lose their order; give the topic its old count back, or publish under another KAFKA_TOPIC_PREFIX`,
    );
  }
};

const rejectNotReady = (
  { state, error = 'no reason is known' }: RelayStatus,
  mayRun: boolean,
  allAcknowledged: boolean,
): void => {
  if (state === 'standing-by' || !mayRun) throw new StandingBy('another process relays');
  if (state === 'halted') throw new RelayNotReady(`the relay has halted: ${error}`);
  if (allAcknowledged && state === 'running') return;
  throw new RelayNotReady(
    state === 'backing-off'
      ? `the relay backs off (${error}); it tries parked payments once it has caught up`
      : `the relay is ${state}; it tries parked payments once it has caught up`,
  );
};

/** An engine out of reach is no error: the relay waits for it. */
export const startRelay = (options: RelayOptions): Relay => {
  const { store, feed, checkpoint: document, logger, mayRun = () => true } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const stopping = new AbortController();
  let halted: string | undefined;
  let standingBy = false;
  /** Only while every message that was sent is acknowledged, a parked payment may be sent. */
  let allAcknowledged = false;
  let lookedAtPartitionsMs = 0;

  // With `mayRun` another relay is expected: this one tries again.
  const overtaken = (): Error => {
    const why = 'another relay has moved the checkpoint of the relay';
    return options.mayRun === undefined ? new RelayHalted(why) : new Error(why);
  };
  const checkpoint = openOwnCheckpoint(document, overtaken);
  const publisher: Publisher = createPublisher({ store, feed, checkpoint, logger });

  const waitForTurn = async (): Promise<void> => {
    checkpoint.leave();
    // A document that cannot be read is reported where the checkpoint is taken.
    await checkpoint.read().catch(() => undefined);
    while (!mayRun()) {
      standingBy = true;
      await delay(waitsMs.standBy, undefined, { signal: stopping.signal });
      await checkpoint.read().catch(() => undefined);
    }
    standingBy = false;
  };

  const findPartitions = async (): Promise<Partitions> => {
    const found = await feed.partitions();
    lookedAtPartitionsMs = performance.now();
    return found;
  };

  /** An operator may have changed the count at the broker. */
  const recheckPartitions = async (): Promise<void> => {
    if (performance.now() - lookedAtPartitionsMs <= waitsMs.recheck) return;
    rejectChange(checkpoint.value().partitions, await findPartitions());
  };

  const start = async (): Promise<Position | null> => {
    const found = await findPartitions();
    const taken = await checkpoint.take(found);
    rejectChange(taken.partitions, found);
    await rejectMisfit(store, taken);
    await publisher.finishParked();
    return checkpoint.value().position;
  };

  const idsOfParked = (): string[] => Object.keys(checkpoint.value().parked);

  /** The messages of before this start were sent again and acknowledged: now come the parked ones. */
  const caughtUp = async (): Promise<void> => {
    if (allAcknowledged) return;
    await publisher.sendParked(idsOfParked());
    allAcknowledged = true;
  };

  const deliver = async (events: LogEvent[]): Promise<void> => {
    if (!mayRun()) throw new Error('another process relays');
    await recheckPartitions();
    await publisher.send(events);
  };

  const orHalt = async <T>(step: () => Promise<T>): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      allAcknowledged = false;
      if (error instanceof RelayHalted) {
        halted = error.message;
        logger.error({ reason: halted }, 'relay halted: it cannot go on until an operator acts');
        void subscription.stop();
      }
      throw error;
    }
  };

  const turns = createTurns();
  const inTurn = <T>(step: () => Promise<T>): Promise<T> => turns(() => orHalt(step));

  const subscription: Subscription = runSubscription({
    store,
    logger,
    backOff: options.backOff,
    subscriber: {
      start: async () => {
        allAcknowledged = false;
        await waitForTurn();
        return inTurn(start);
      },
      events: (events) => inTurn(() => deliver(events)),
      caughtUp: () => inTurn(caughtUp),
    },
  });

  // The turn is lost without an event of the log: from then on the other relay's checkpoint counts.
  const watch = setInterval(() => {
    if (checkpoint.taken() !== undefined && !mayRun()) subscription.restart();
  }, waitsMs.standBy);
  watch.unref();

  const position = (): Position | null => checkpoint.known()?.position ?? null;

  const status = (): RelayStatus => {
    const { restarts, ...now } = subscription.status();
    const isSilent = publisher.silentForMs() > waitsMs.silence;
    return {
      ...stateOf(now, halted, standingBy, isSilent),
      checkpoint: position(),
      parked: Object.keys(checkpoint.known()?.parked ?? {}).length,
      counts: { published: publisher.published(), restarts },
    };
  };

  const retry = async (paymentId?: string): Promise<Retried[]> => {
    rejectNotReady(status(), mayRun(), allAcknowledged);
    await recheckPartitions();
    const ids = idsOfParked().filter((id) => paymentId === undefined || id === paymentId);
    return publisher.sendParked(ids.slice(0, RETRIED_MAX));
  };

  return {
    lag: createLag({ store, checkpoint: position }),
    partitions: () => checkpoint.known()?.partitions,
    status,
    parked: async () => {
      const known = checkpoint.taken() ?? (await checkpoint.read().catch(throwUnread));
      return known?.parked ?? {};
    },
    retryParked: async (paymentId) => {
      rejectNotReady(status(), mayRun(), allAcknowledged);
      try {
        return await inTurn(() => retry(paymentId));
      } catch (error) {
        // The next start sends first what may have left.
        subscription.restart();
        if (error instanceof StandingBy || error instanceof RelayNotReady) throw error;
        throw new RelayNotReady(
          `the relay was interrupted, and goes on by itself: ${reasonOf(error)}`,
        );
      }
    },
    stop: async () => {
      clearInterval(watch);
      stopping.abort();
      const ended = subscription.stop();
      await Promise.race([ended, delay(waitsMs.stop, undefined, { ref: false })]);
      await feed.close();
      await ended;
      // A retry under way ends at the closed feed.
      await turns(async () => undefined);
      await document.close();
    },
  };
};
