/** A second, reading connection. Each page is a transaction, so the write-ahead log can move. */
import { pathToFileURL } from 'node:url';
import { reasonOf } from '../../runtime/error-text.ts';
import { type Scan, type ScanOrder, stepsOf } from '../../runtime/scan.ts';
import { mapInSlices } from '../../runtime/slices.ts';
import { codeOf, isDamage } from '../../runtime/sqlite.ts';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import { decodeForm, wholeStream } from '../fold-stream.ts';
import type {
  EventStore,
  LogReader,
  Position,
  RecordedEvent,
  StoredForm,
  UnreadableEvent,
} from '../port.ts';
import { openForReading, prepareAll, type Reads, readsOf } from './database.ts';
import { follow, liveTail, ofTypes, positionNumber } from './live-tail.ts';
import type { Row } from './messages.ts';

function formOf(row: Row): StoredForm {
  const [number, stream, revision, id, hash, logHash, text, logHashBefore] = row;
  return { position: String(number), stream, revision, id, hash, logHash, text, logHashBefore };
}

export const decodeRow = (row: Row): RecordedEvent | UnreadableEvent => decodeForm(formOf(row));

/** In whichever thread has the file open; throws the port's errors. */
export type Call = <N extends keyof Reads>(
  name: N,
  ...args: Parameters<Reads[N]>
) => Promise<ReturnType<Reads[N]>>;

export function readerOf(call: Call): Omit<LogReader, 'end'> {
  const page = async (after: Position | null, limit: number, upTo?: Position | null) => {
    const last = upTo === undefined ? Number.MAX_SAFE_INTEGER : positionNumber(upTo);
    return call('readAll', positionNumber(after), last, limit);
  };
  return {
    readStream: async (stream) =>
      wholeStream(await mapInSlices(await call('readStream', stream), decodeRow)),
    lastRevision: (stream) => call('lastRevision', stream),
    readAll: async (...range) => mapInSlices(await page(...range), decodeRow),
    hashAt: async (position) => call('hashAt', positionNumber(position)),
    stored: {
      guarantee: 'log',
      readStream: async (stream) => (await call('readStream', stream)).map(formOf),
      readAll: async (...range) => (await page(...range)).map(formOf),
    },
  };
}

/** `isLive`: a service writes to the path `file`; else an address or path for SQLite. */
export type LogFile = { file: string; isLive: boolean };

/** It and each call throw StoreFileUnusable or StoreUnavailable. */
const openLog = ({ file, isLive }: LogFile) => {
  const address = isLive ? `${pathToFileURL(file).href}?mode=ro` : file;
  const read = <T>(step: () => T): T => {
    try {
      return step();
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      const message = `${address}: ${reasonOf(error)} (SQLite error ${codeOf(error)})`;
      // A live file may only be busy.
      throw isDamage(error) || !isLive
        ? new StoreFileUnusable(message)
        : new StoreUnavailable(message);
    }
  };
  const database = read(() => openForReading(address));
  const statements = read(() => prepareAll(database));
  const reads = readsOf(statements);
  const inOrder: Reads = {
    ...reads,
    readAll: (after, upTo, limit) => {
      const rows = reads.readAll(after, upTo, limit);
      // Two pages of the file in each other's place would make reading go round.
      let before = after;
      for (const [position] of rows) {
        if (position > before) before = position;
        else
          throw new StoreFileUnusable(
            `${address}: event ${position} is stored after event ${before}`,
          );
      }
      return rows;
    },
  };
  const call = async (name: keyof Reads, ...args: never[]) =>
    read(() => (inOrder[name] as (...given: never[]) => unknown)(...args));
  const reader = readerOf(call as Call);

  const log: LogReader = {
    ...reader,
    end: async () => read(() => statements.end.get()?.position)?.toString() ?? null,
  };
  return { log, close: () => database.close() };
};

type LogJob = LogFile & Pick<ScanOrder, 'module' | 'job' | 'args'>;

export const scanFile: Scan<LogJob, unknown, unknown> = async function* (given, tools) {
  const { log, close } = openLog(given);
  try {
    return yield* stepsOf(given, log, given.args, tools);
  } finally {
    close();
  }
};

export const overFile = (
  { file, isLive }: LogFile,
  { module, job, args, ...order }: ScanOrder,
): ScanOrder => ({
  ...order,
  module: import.meta.url,
  job: 'scanFile',
  args: { file, isLive, module, job, args } satisfies LogJob,
});

/**
 * A log that another thread writes, read up to where `grow` allows: the writer learns of a commit a
 * moment after the file has it. Throws StoreFileUnusable and StoreUnavailable.
 */
export const openFollowedLog = (file: string, first: Position | null) => {
  const { log, close } = openLog({ file, isLive: true });
  let end = first;
  const last = (): number => positionNumber(end);
  const tail = {
    ...liveTail(0),
    last,
    after: (position: number) => (position < last() ? undefined : []),
  };
  const subscribe: EventStore['subscribe'] = (after, signal, types) => {
    const page = (from: Position, limit: number) => log.readAll(from, limit, end);
    return ofTypes(follow(tail, page, after, signal), types);
  };
  return {
    ...log,
    end: async () => end,
    subscribe,
    grow: (position: Position | null) => {
      end = position;
      tail.announce();
    },
    close,
  };
};
