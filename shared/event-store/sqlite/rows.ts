import { mapInSlices } from '../../runtime/slices.ts';
import type { LogReader, Position, RecordedEvent, StoredForm, UnreadableEvent } from '../port.ts';
import { decodeForm, wholeStream } from '../whole-stream.ts';
import type { Reads } from './database.ts';
import { positionNumber } from './live-tail.ts';
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
