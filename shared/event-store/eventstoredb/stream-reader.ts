import { BACKWARDS, END } from '@eventstore/db-client';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { onError } from '../../runtime/error-text.ts';
import { mapInSlices } from '../../runtime/scheduling.ts';
import { StoreUnavailable, StreamNotWhole } from '../errors.ts';
import { wholeStream } from '../fold-stream.ts';
import type { RecordedEvent } from '../port.ts';
import { notWhole } from './call-outcome.ts';
import type { Connection } from './connection.ts';
import { cutsStream, fromServer, METADATA_OF, type ServerEvent } from './records.ts';

const KNOWN_ENDS_MAX = 20_000;
const REMOVALS_MAX = 10_000;

// The stream of `logIdOf`, one event: reads of the whole log stall a small server.
const PINGED = 'meta-log-id';

export const createSeen = () => ({
  ends: createBoundedMap<Pick<RecordedEvent, 'revision' | 'hash'>>(KNOWN_ENDS_MAX),
  /** An administrator may have deleted or cut these: the server would take appends to them. */
  removals: createBoundedMap<true>(REMOVALS_MAX),
});

export type Seen = ReturnType<typeof createSeen>;

export const noteEnd = ({ ends }: Seen, event: RecordedEvent | undefined): void => {
  if (event !== undefined) ends.set(event.stream, { revision: event.revision, hash: event.hash });
};

export const endedWithoutResponse = (): StoreUnavailable =>
  new StoreUnavailable('event store: the server ended a read without an event');

const unlessCut = onError(StreamNotWhole, () => undefined);

const LAST_EVENT = {
  direction: BACKWARDS,
  fromRevision: END,
  maxCount: 1,
  requiresLeader: true,
} as const;

/** Throws StoreUnavailable, and StreamNotWhole; `readStream` UnreadableStream too. */
export function createStreamReader({ read }: Connection, seen: Seen) {
  const last = (stream: string) => read(stream, LAST_EVENT);

  async function rejectRemoved(stream: string, what: 'deleted' | 'cut'): Promise<void> {
    const [metadata] = (await last(`${METADATA_OF}${stream}`)) ?? [];
    if (metadata !== undefined && cutsStream(metadata)) throw notWhole(stream, what);
  }

  /** A stream that exists has an event, unless all were cut off. */
  async function rejectEmpty(stream: string): Promise<never> {
    await rejectRemoved(stream, 'cut');
    throw endedWithoutResponse();
  }

  // The server reports a deleted stream as missing.
  async function whole(stream: string): Promise<ServerEvent[]> {
    const events = await read(stream, { requiresLeader: true });
    if (events?.length === 0) await rejectEmpty(stream);
    if (events === undefined && seen.removals.get(stream)) await rejectRemoved(stream, 'deleted');
    return events ?? [];
  }

  async function part(stream: string, revision: number, maxCount: number): Promise<ServerEvent[]> {
    const options = { fromRevision: BigInt(revision), maxCount, requiresLeader: true };
    return (await read(stream, options)) ?? [];
  }

  return {
    whole,
    part,
    ping: async (ms: number): Promise<void> => {
      // A user that may read no stream is no fault of this one.
      const limits = { ms, attempts: 1, stream: undefined };
      // Where it is not whole the server answers, and what rests on the stream says the rest (gaps §29).
      const events = await read(PINGED, LAST_EVENT, limits).catch(unlessCut);
      if (events?.length === 0) throw endedWithoutResponse();
    },
    /** Throws StreamNotWhole unless its first event is there, or it was never written. */
    mustBeWhole: async (stream: string): Promise<void> => {
      const [first] = await part(stream, 0, 1);
      if (first?.revision === 0n) return;
      if (first !== undefined) throw notWhole(stream, 'cut');
      await rejectRemoved(stream, 'deleted');
    },
    async readStream(stream: string): Promise<RecordedEvent[]> {
      const events = wholeStream(await mapInSlices(await whole(stream), fromServer));
      noteEnd(seen, events.at(-1));
      return events;
    },
    async lastRevision(stream: string): Promise<number | null> {
      const events = await last(stream);
      if (events === undefined) await rejectRemoved(stream, 'deleted');
      if (events === undefined) return null;
      const [event] = events;
      return event === undefined ? rejectEmpty(stream) : Number(event.revision);
    },
  };
}

export type StreamReader = ReturnType<typeof createStreamReader>;
