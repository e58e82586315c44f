/** The log in memory and its streams, with the server's rules for appending. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createRemoved } from './removed.ts';
import type { Stored } from './stored.ts';

export type StandInOptions = {
  port?: number;
  /** JSON lines, read at the start and added to: what is appended is there after a restart. */
  file?: string;
  /** After each append the server adds an event of its own, as statistics do. */
  noisy?: boolean;
  /**
   * It says "caught up" after each live event, also between two of one append, and sends each in a part of
   * its own, as KurrentDB 26 was seen to.
   */
  marksEachEvent?: boolean;
  /** What it says that it is: 24.10.9. */
  version?: string;
  /** It names so many followers, which no client can connect to. */
  followers?: number;
  /** It speaks TLS, with this certificate and its key. */
  certificate?: { cert: string; key: string };
  /** `name:password` of the one user that it knows; left out: it checks none. */
  user?: string;
  /** Its user may not delete streams. */
  refusesDeletes?: boolean;
  /** What one append on a stream may carry: 1 MiB. */
  appendBytesMax?: number;
};

/** What a writer sends of an event: the log gives it its place. */
export type Proposed = Omit<Stored, 'position' | 'revision'>;

/** Stored or recognised, or the revision that the stream ends at, or that it is gone for good. */
export type Appended = { stored: Stored[] } | { endsAt: number } | { deleted: string };

// A real position is an offset in bytes.
const POSITION_STEP = 331n;
// What a soft delete writes: beyond every revision.
const DELETED = Number.MAX_SAFE_INTEGER;

export function makeLog({ file, noisy }: StandInOptions) {
  const all: Stored[] = [];
  const streams = new Map<string, Stored[]>();
  const listeners = new Set<(event: Stored) => void>();
  const removed = createRemoved((stream) => streams.get(stream)?.length ?? 0);
  // What is scavenged leaves no position to be given again.
  let end = 0n;

  const put = (event: Proposed): Stored => {
    const stream = streams.get(event.stream) ?? [];
    end += POSITION_STEP;
    const stored = { ...event, revision: stream.length, position: end };
    all.push(stored);
    if (removed.note(stored)) return stored;
    stream.push(stored);
    streams.set(event.stream, stream);
    return stored;
  };
  const json = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64');
  const own = (stream: string, type: string, data: object): Stored =>
    put({
      stream,
      id: crypto.randomUUID(),
      type,
      contentType: 'application/json',
      data: json(data),
      metadata: json({}),
      created: Date.now(),
    });
  const foreign = (stream: string): Stored => own(stream, '$statsCollected', { of: stream });
  const keep = (events: Stored[]): void => {
    if (file === undefined) return;
    const lines = events.map(({ position: _, ...event }) => `${JSON.stringify(event)}\n`);
    appendFileSync(file, lines.join(''));
  };

  for (const stream of ['$users', '$user-admin', '$settings']) foreign(stream);
  if (file !== undefined && existsSync(file)) {
    for (const line of readFileSync(file, 'utf8').split('\n'))
      if (line !== '') put(JSON.parse(line));
  }

  const tell = (events: Stored[]): void => {
    for (const event of events) for (const listener of listeners) listener(event);
  };
  /** An event of the server's own, kept and delivered like any other. */
  const note = (stream: string, type: string, data: object): void => {
    const stored = own(stream, type, data);
    keep([stored]);
    tell([stored]);
  };
  const metadata = (stream: string, data: object): void => note(`$$${stream}`, '$metadata', data);

  return {
    all,
    streams,
    listeners,
    removed,
    foreign: (stream: string): void => tell([foreign(stream)]),
    metadata,
    softDelete: (stream: string): void => metadata(stream, { $tb: DELETED }),
    tombstone: (stream: string): void => note(stream, '$streamDeleted', {}),
    /** Changes events, takes them out or puts them in, as a writer of the server's files; each lies where it says. */
    edit(change: (events: readonly Stored[]) => Stored[]): void {
      const changed = change(all);
      all.splice(0, all.length, ...changed);
      streams.clear();
      for (const [name, events] of Map.groupBy(changed, ({ stream }) => stream))
        streams.set(name, events);
    },
    /** Takes what was deleted or cut out of the log; a tombstone stays, positions do not change. */
    scavenge: (): void => void all.splice(0, all.length, ...all.filter(removed.survives)),
    /** Stores, recognises, or gives the revision that the stream ends at. */
    append(stream: string, expected: number, events: Proposed[]): Appended {
      if (removed.isTombstoned(stream)) return { deleted: stream };
      const stored = streams.get(stream) ?? [];
      const last = stored.length - 1;
      const beginsAnew = removed.isSoftDeleted(stream) && (expected === -1 || expected === last);
      if (beginsAnew) metadata(stream, { $tb: stored.length });
      else if (expected !== last) {
        const there = stored.slice(expected + 1, expected + 1 + events.length);
        const isRepeat =
          events.length > 0 &&
          there.length === events.length &&
          there.every(({ id }, index) => id === events[index]?.id);
        return isRepeat ? { stored: there } : { endsAt: last };
      }
      // A repeated id at the end of its own stream is written once more: the server does that too.
      const written = events.map(put);
      if (noisy) foreign('$stats-127.0.0.1:2113');
      keep(written);
      tell(written);
      return { stored: written };
    },
  };
}

export type Log = ReturnType<typeof makeLog>;

/** The index of the first event at or after a position. */
export function indexAt(all: Stored[], position: bigint): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle] as Stored).position < position) low = middle + 1;
    else high = middle;
  }
  return low;
}
