/** Whether a document may be older than its stream, in a process beside which others append (gaps §9). */
import { StoreUnavailable } from '../shared/event-store/errors.ts';
import type { EventStore, Position } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/payment-events.ts';
import type { ReadModelsWriter } from '../shared/read-models/port.ts';
import { within } from '../shared/runtime/back-off.ts';

/** Awaited before the document is read. A Check takes its revision; true: later events may be stored. */
export type Behind = (paymentId: string) => Check | Promise<Check>;
type Check = (revision: number) => boolean | Promise<boolean>;

export const behindTheStream =
  (store: Pick<EventStore, 'lastRevision'>, ended = (): void => undefined): Behind =>
  (paymentId) => {
    const read = store.lastRevision(streamOf(paymentId)).finally(ended);
    const last = read.catch((error: unknown) => {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    });
    // A request without a document never awaits `last`, whose rejection must not end the process.
    last.catch(() => undefined);
    // The event store is out of reach: the document is served as it is.
    return async (revision) => {
      const known = await last;
      return known !== undefined && known !== revision;
    };
  };

/** With one more at a time, the GETs of the next moments share a look. */
const ALONE_MAX = 4;
const SHARED_FOR_MS = 100;
/** A longer look would cost more than the questions it saves. */
const NEWER_EVENTS_MAX = 100;
const LOOK_MS_MAX = 1000;
/** For that long after a look that showed nothing, each GET asks for its own stream. */
const PAUSE_MS = 1000;
/** A server's files cannot be put back in less time. */
const CONFIRMED_FOR_MS = 1000;

type Newer = Map<string, number> | undefined;

type SharedLook = {
  store: Pick<EventStore, 'lastRevision' | 'readAll' | 'hashAt'>;
  readModels: Pick<ReadModelsWriter, 'checkpoint'>;
};

const late = (): Error => new Error('the look at the end of the log took too long');

/** Each GET gets a look that begins after it came, and reads a document as new as the look's checkpoint. */
const createLooks = ({ store, readModels }: SharedLook, nowMs: () => number) => {
  let running: Promise<unknown> = Promise.resolve();
  let next: Promise<{ newer: Promise<Newer>; begunMs: number }> | undefined;
  let underWay = 0;
  let confirmedUntilMs = 0;
  let pausedUntilMs = 0;

  const inTime = async <T>(work: () => Promise<T | undefined>): Promise<T | undefined> => {
    const found = await within(LOOK_MS_MAX, work(), late).catch(() => undefined);
    if (found === undefined) pausedUntilMs = nowMs() + PAUSE_MS;
    return found;
  };

  const filledTo = async (): Promise<Position | undefined> => {
    const place = await readModels.checkpoint();
    if (place === null) return undefined;
    if (nowMs() < confirmedUntilMs) return place;
    // Read models that are ahead of a log put back from a copy say nothing about its streams.
    if ((await store.hashAt(place)) === null) return undefined;
    confirmedUntilMs = nowMs() + CONFIRMED_FOR_MS;
    return place;
  };

  const newerThan = async (place: Position): Promise<Newer> => {
    const events = await store.readAll(place, NEWER_EVENTS_MAX + 1);
    if (events.length > NEWER_EVENTS_MAX) return undefined;
    return new Map(events.map(({ stream, revision }) => [stream, revision]));
  };

  const begin = async () => {
    const begunMs = nowMs();
    const place = await inTime(filledTo);
    // A GET that comes from now on needs a later look.
    next = undefined;
    const newer = place === undefined ? Promise.resolve(undefined) : inTime(() => newerThan(place));
    running = newer.then(() => {
      underWay -= 1;
    });
    return { newer, begunMs };
  };

  return {
    isPaused: (): boolean => nowMs() < pausedUntilMs,
    isUnderWay: (): boolean => underWay > 0,
    join: () => {
      if (next === undefined) {
        underWay += 1;
        next = running.then(begin);
      }
      return next;
    },
  };
};

/** One look for many GETs: a fourth of the CPU time on EventStoreDB. `nowMs` only goes forward. */
export const behindTheLog = (
  shared: SharedLook,
  nowMs = (): number => performance.now(),
): Behind => {
  const looks = createLooks(shared, nowMs);
  let alone = 0;
  let sharedUntilMs = 0;
  const ofStream = behindTheStream(shared.store, () => {
    alone -= 1;
  });
  const askAlone: Behind = (paymentId) => {
    alone += 1;
    return ofStream(paymentId);
  };

  return async (paymentId) => {
    if (looks.isPaused()) return askAlone(paymentId);
    if (alone >= ALONE_MAX || looks.isUnderWay()) sharedUntilMs = nowMs() + SHARED_FOR_MS;
    if (nowMs() >= sharedUntilMs) return askAlone(paymentId);
    const { newer, begunMs } = await looks.join();
    return async (revision) => {
      // A document read so late may be of read models that were put back since the look.
      const isLate = nowMs() - begunMs >= CONFIRMED_FOR_MS;
      const known = await newer;
      if (known === undefined || isLate) return (await askAlone(paymentId))(revision);
      return (known.get(streamOf(paymentId)) ?? -1) > revision;
    };
  };
};
