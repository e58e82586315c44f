/** Reading one stream of EventStoreDB, from the leader. */
import { BACKWARDS, END } from '@eventstore/db-client';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { mapInSlices } from '../../runtime/slices.ts';
import { StoreUnavailable } from '../errors.ts';
import type { RecordedEvent } from '../port.ts';
import { wholeStream } from '../whole-stream.ts';
import type { Connection } from './connection.ts';
import { type ServerEvent, verifiedFromServer } from './records.ts';

const KNOWN_ENDS_MAX = 20_000;

/** The last known revision and hash of the streams in use, to spare the read that would find them. */
export function knownEnds() {
  const ends = createBoundedMap<{ revision: number; hash: string }>(KNOWN_ENDS_MAX);
  return {
    at: (stream: string, revision: number): string | undefined => {
      const end = ends.get(stream);
      return end?.revision === revision ? end.hash : undefined;
    },
    learn(event: RecordedEvent | undefined): void {
      if (event === undefined) return;
      const { stream, revision, hash } = event;
      ends.set(stream, { revision, hash });
    },
  };
}

/** See `knownEnds`. */
export type KnownEnds = ReturnType<typeof knownEnds>;

/** The error of a read that ended without an event where there must be one. */
export const endedWithoutResponse = (): StoreUnavailable =>
  new StoreUnavailable('event store: the server ended a read without an event');

/** Reads of one stream; each throws StoreUnavailable, `readStream` UnreadableStream as well. */
export function createStreamReader({ read }: Connection, ends: KnownEnds) {
  // A stream that exists has an event; of one that does not, the server says that it is missing.
  async function whole(stream: string): Promise<ServerEvent[]> {
    // seeded bug: read-from-leader
    const events = await read((client) => client.readStream(stream, { requiresLeader: true }));
    if (events?.length === 0) throw endedWithoutResponse();
    return events ?? [];
  }
  return {
    whole,
    /** Up to `maxCount` events from a revision on; none past the end. */
    part: async (stream: string, revision: number, maxCount: number): Promise<ServerEvent[]> => {
      const options = { fromRevision: BigInt(revision), maxCount, requiresLeader: true };
      return (await read((client) => client.readStream(stream, options))) ?? [];
    },
    async readStream(stream: string): Promise<RecordedEvent[]> {
      const events = wholeStream(await mapInSlices(await whole(stream), verifiedFromServer));
      ends.learn(events.at(-1));
      return events;
    },
    async lastRevision(stream: string): Promise<number | null> {
      const options = {
        direction: BACKWARDS,
        fromRevision: END,
        maxCount: 1,
        requiresLeader: true,
      } as const;
      const events = await read((client) => client.readStream(stream, options));
      if (events === undefined) return null;
      if (events[0] === undefined) throw endedWithoutResponse();
      return Number(events[0].revision);
    },
  };
}

/** See `createStreamReader`. */
export type StreamReader = ReturnType<typeof createStreamReader>;
