/**
 * The relay: follows the log and sends each event of a payment, the payment's state after it, and each seal to the feed. Its
 * checkpoint is saved after the broker has stored everything; after a fault before that, the same
 * messages are sent again, to the byte. A relay that fails delays neither commands nor reads.
 *
 * An event that cannot be read parks its own payment and nothing else: no later event of that payment
 * is sent, so no reader meets a gap, and each start of the relay tries again.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { EventStore, LogEvent, Position } from '../../shared/event-store/port.ts';
import type { BackOff } from '../../shared/runtime/back-off.ts';
import type { EventFeed, Partitions } from '../event-feed/port.ts';
import { createLag, type Lag } from '../lag.ts';
import { misfitOf } from '../log-check.ts';
import { type Log, runSubscription, type Subscription } from '../subscription.ts';
import { openOwnCheckpoint } from './checkpoint/own-checkpoint.ts';
import type { KeyDocument, RelayCheckpoint } from './checkpoint/port.ts';
import { RelayHalted } from './errors.ts';
import { createPartitionCheck, rejectChange } from './partition-check.ts';
import { createPublisher, type Publisher } from './publisher.ts';
import { type RelayStatus, stateOf } from './status.ts';

export type RelayOptions = {
  store: Pick<EventStore, 'subscribe' | 'readStream' | 'readAll' | 'end' | 'head' | 'hashAt'>;
  feed: EventFeed;
  checkpoint: KeyDocument;
  logger: Log;
  /** True while this process may relay, where several processes could. Left out: always true. */
  mayRun?: () => boolean;
  /** Waits after an error: from `minMs`, doubled each time with jitter, up to `maxMs`. */
  backOff?: BackOff;
  /** In milliseconds; tests shorten them. */
  waitsMs?: Partial<typeof WAITS_MS>;
};

export type Relay = {
  status(): RelayStatus;
  /** Measured now, against the store's own head; undefined when off. Throws StoreUnavailable. */
  lag(): Promise<Lag | undefined>;
  /** How many partitions the topics have; undefined until that is known. */
  partitions(): Partitions | undefined;
  /** Closes feed and checkpoint. Resolves within a few seconds, whatever the broker does. */
  stop(): Promise<void>;
};

const WAITS_MS = {
  /** Between two looks whether this process may run. */
  standBy: 500,
  /** A send without a response for longer than this shows in the status. */
  silence: 5_000,
  /** Between two looks at the topics' partition counts. */
  recheck: 60_000,
  /** How long `stop` waits for a send under way. */
  stop: 2_000,
};

/** Throws RelayHalted where the log does not fit the checkpoint of the relay, and StoreUnavailable. */
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

/** Starts relaying from the relay checkpoint. An engine out of reach is no error: the relay waits for it. */
export const startRelay = (options: RelayOptions): Relay => {
  const { store, feed, checkpoint: document, logger, mayRun = () => true } = options;
  const waitsMs = { ...WAITS_MS, ...options.waitsMs };
  const checkpoint = openOwnCheckpoint(document);
  const partitionCheck = createPartitionCheck(feed, waitsMs.recheck);
  const stopping = new AbortController();
  let halted: string | undefined;
  let standingBy = false;

  // With `mayRun` several processes relay in turn, so another relay is expected: this one tries again.
  const overtaken = (): Error => {
    const why = 'another relay has moved the checkpoint of the relay';
    return options.mayRun === undefined ? new RelayHalted(why) : new Error(why);
  };
  const publisher: Publisher = createPublisher({ store, feed, checkpoint, logger, overtaken });

  const waitForTurn = async (): Promise<void> => {
    while (!mayRun()) {
      standingBy = true;
      await delay(waitsMs.standBy, undefined, { signal: stopping.signal });
    }
    standingBy = false;
  };

  const start = async (): Promise<Position | null> => {
    await waitForTurn();
    const found = await partitionCheck.look();
    const taken = await checkpoint.take(found);
    if (taken === undefined) throw overtaken();
    rejectChange(taken.partitions, found);
    await rejectMisfit(store, taken);
    await publisher.sendParked();
    return checkpoint.value().position;
  };

  const deliver = async (events: LogEvent[]): Promise<void> => {
    if (!mayRun()) throw new Error('another process relays');
    await partitionCheck.recheck(checkpoint.value().partitions);
    await publisher.send(events);
  };

  /** Ends the loop after an error that a new attempt cannot mend. */
  const orHalt = async <T>(step: Promise<T>): Promise<T> => {
    try {
      return await step;
    } catch (error) {
      if (error instanceof RelayHalted) {
        halted = error.message;
        logger.error({ reason: halted }, 'relay halted: it cannot go on until an operator acts');
        void subscription.stop();
      }
      throw error;
    }
  };

  const subscription: Subscription = runSubscription({
    store,
    logger,
    ...(options.backOff === undefined ? {} : { backOff: options.backOff }),
    subscriber: {
      start: () => orHalt(start()),
      events: (events) => orHalt(deliver(events)),
      caughtUp: () => undefined,
    },
  });

  const position = (): Position | null => checkpoint.peek()?.position ?? null;

  return {
    lag: createLag({ store, checkpoint: position }),
    partitions: () => checkpoint.peek()?.partitions,
    status: () => {
      const { restarts, ...now } = subscription.status();
      const isSilent = publisher.silentForMs() > waitsMs.silence;
      return {
        ...stateOf({ subscription: now, halted, standingBy, isSilent }),
        checkpoint: position(),
        parked: Object.keys(checkpoint.peek()?.parked ?? {}).length,
        counts: { published: publisher.published(), restarts },
      };
    },
    stop: async () => {
      stopping.abort();
      const ended = subscription.stop();
      await Promise.race([ended, delay(waitsMs.stop, undefined, { ref: false })]);
      await feed.close();
      await ended;
      await document.close();
    },
  };
};
