/** Keeps the newest events in memory. A thread reads each page in a transaction, so that the WAL can move. */
import { EventEmitter, once } from 'node:events';
import { pathToFileURL } from 'node:url';
import type { EventType } from '../../payment/events.ts';
import { pause } from '../../runtime/back-off.ts';
import { reasonOf } from '../../runtime/error-text.ts';
import { type Job, stepsOf } from '../../runtime/jobs.ts';
import { mapInSlices } from '../../runtime/scheduling.ts';
import { codeOf, isDamage } from '../../runtime/sqlite.ts';
import { isReadable } from '../codec.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import { decodeForm, wholeStream } from '../fold-stream.ts';
import type {
  EventStore,
  LogEvent,
  LogJob,
  LogReader,
  Position,
  RecordedEvent,
  SubscriptionItem,
} from '../port.ts';
import { openForReading, prepareAll, type Reads, readsOf } from './database.ts';

// A subscriber may lag so far before it reads the store: 0.8 MB (ADR-0112).
const KEPT_EVENTS = 512;
const BATCH_EVENTS_MAX = 1000;

export type LiveTail = ReturnType<typeof liveTail>;

export function liveTail(last: number) {
  let kept: RecordedEvent[] = [];
  const news = new EventEmitter().setMaxListeners(0);
  let end = last;

  return {
    last: (): number => end,
    /** A gap (another process wrote) starts the tail anew. */
    push(event: RecordedEvent): void {
      const position = Number(event.position);
      if (position !== end + 1) kept = [];
      kept.push(event);
      if (kept.length > KEPT_EVENTS) kept.shift();
      end = position;
    },
    after(position: number, limit: number): RecordedEvent[] | undefined {
      const from = position - (end - kept.length);
      return from < 0 ? undefined : kept.slice(from, from + limit);
    },
    announce: () => void news.emit('news'),
    /** Until the next `announce`, or the abort of `signal`. */
    announced: async (signal: AbortSignal): Promise<void> =>
      void (await once(news, 'news', { signal }).catch(() => undefined)),
  };
}

/** Null for 0, the position before the first event. */
export const positionOf = (number: number): Position | null =>
  number === 0 ? null : String(number);

/** 0 for the start. Throws RangeError for a text that is no position. */
export const positionNumber = (position: Position | null): number => {
  const number = Number(position ?? 0);
  const isWellFormed = position === null || /^\d+$/.test(position);
  if (!isWellFormed || !Number.isSafeInteger(number)) throw new RangeError('not a position');
  return number;
};

/** Throws as `readPage`, and RangeError past the end of the log: events its reader saw are gone. */
export async function* followFile(
  tail: Pick<LiveTail, 'last' | 'after' | 'announced'>,
  readPage: (after: Position, limit: number) => Promise<LogEvent[]>,
  after: Position | null,
  signal: AbortSignal,
  types?: readonly EventType[],
): AsyncGenerator<SubscriptionItem> {
  const isOfTypes = (event: LogEvent): boolean =>
    types === undefined || !isReadable(event) || types.includes(event.event.type);
  let position = positionNumber(after);
  if (position > tail.last()) throw new RangeError(`position ${after} is past the end of the log`);
  let saidCaughtUp = false;
  while (!signal.aborted) {
    const found =
      tail.after(position, BATCH_EVENTS_MAX) ??
      (await readPage(String(position), BATCH_EVENTS_MAX));
    if (signal.aborted) return;
    const last = found.at(-1);
    if (last !== undefined) {
      const events = found.filter(isOfTypes);
      if (events.length > 0) yield { kind: 'events', events };
      position = Number(last.position);
      saidCaughtUp = false;
    } else if (!saidCaughtUp) {
      yield { kind: 'caught-up' };
      saidCaughtUp = true;
    } else await tail.announced(signal);
  }
}

/** Runs a read in the thread that has the file open; throws the port's errors. */
export type WriterCall = <N extends keyof Reads>(
  name: N,
  ...args: Parameters<Reads[N]>
) => Promise<ReturnType<Reads[N]>>;

export function readerOf(call: WriterCall): Omit<LogReader, 'end'> {
  const page = async (after: Position | null, limit: number, upTo?: Position | null) => {
    const last = upTo === undefined ? Number.MAX_SAFE_INTEGER : positionNumber(upTo);
    return call('readAll', positionNumber(after), last, limit);
  };
  return {
    readStream: async (stream) =>
      wholeStream(await mapInSlices(await call('readStream', stream), decodeForm)),
    lastRevision: (stream) => call('lastRevision', stream),
    readAll: async (...range) => mapInSlices(await page(...range), decodeForm),
    positionBefore: async (time) => positionOf((await call('positionBefore', time)) ?? 0),
    hashAt: async (position) => call('hashAt', positionNumber(position)),
    stored: {
      guarantee: 'log',
      readStream: (stream) => call('readStream', stream),
      readAll: page,
    },
  };
}

/** The address at which a second connection opens the file that a service writes to. */
export const liveAddress = (file: string): string => `${pathToFileURL(file).href}?mode=ro`;

/** Reads in this thread by its own connection. It and each call throw StoreFileUnusable or StoreUnavailable. */
export const openLog = (address: string, isLive: boolean) => {
  const read = <T>(step: () => T): T => {
    try {
      return step();
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      const message = `${address}: ${reasonOf(error)} (SQLite error ${codeOf(error)})`;
      // A live file may only be busy.
      const isDamaged = isDamage(error);
      throw isDamaged || !isLive
        ? new StoreFileUnusable(message, isDamaged)
        : new StoreUnavailable(message);
    }
  };
  const database = read(() => openForReading(address));
  const reads = readsOf(read(() => prepareAll(database)));
  const inOrder: Reads = {
    ...reads,
    readAll: (after, upTo, limit) => {
      const forms = reads.readAll(after, upTo, limit);
      // Two pages of the file in each other's place would make reading go round.
      let before = after;
      for (const { position } of forms) {
        if (Number(position) <= before)
          throw new StoreFileUnusable(
            `${address}: event ${position} is stored after event ${before}`,
          );
        before = Number(position);
      }
      return forms;
    },
  };
  const call: WriterCall = async (name, ...args) =>
    read(() => (inOrder[name] as (...given: typeof args) => never)(...args));
  return { call, close: () => database.close() };
};

const openLiveLog = (file: string) => {
  const { call, close } = openLog(liveAddress(file), true);
  const end = async () => positionOf(await call('end'));
  const log: LogReader = { ...readerOf(call), end };
  return { log, close };
};

/** The job as a thread runs it, over a log that it opens by its file. */
export const overLog = <A, Y, R, C>(job: LogJob<A, Y, R, C>): Job<OfFile<A>, Y, R, C> => {
  const run: Job<OfFile<A>, Y, R, C> = async function* ({ file, args }, tools) {
    const { log, close } = openLiveLog(file);
    try {
      return yield* stepsOf(job(log, args, tools));
    } finally {
      close();
    }
  };
  return Object.defineProperty(run, 'name', { value: job.name });
};

type OfFile<A> = { file: string; args: A };

/** Between two looks for news: many appends are read at once. */
const LOOK_MS = 20;

/** A log that another thread writes: what it has not made durable cannot be read. Throws as `openLog`. */
export const openFollowedLog = (file: string) => {
  const { log, close } = openLiveLog(file);
  const subscribe: EventStore['subscribe'] = async function* (after, signal, types) {
    const end = positionNumber(await log.end());
    const announced = () => pause(LOOK_MS, signal);
    const tail = { last: () => end, after: () => undefined, announced };
    yield* followFile(tail, log.readAll, after, signal, types);
  };
  return { ...log, subscribe, close };
};
