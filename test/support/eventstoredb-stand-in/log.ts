/** The log in memory and its streams, with the server's rules for appending. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export type StandInOptions = {
  port?: number;
  /** JSON lines, read at the start and added to: what is appended is there after a restart. */
  file?: string;
  /** After each append the server adds an event of its own, as statistics do. */
  noisy?: boolean;
};

export type Stored = {
  stream: string;
  revision: number;
  id: string;
  type: string;
  contentType: string;
  /** Base64. */
  data: string;
  metadata: string;
  position: bigint;
  created: number;
};

/** What a writer sends of an event: the log gives it its place. */
export type Proposed = Omit<Stored, 'position' | 'revision'>;

/** Stored or recognised, or the revision that the stream ends at. */
export type Appended = { stored: Stored[] } | { endsAt: number };

// A real position is an offset in bytes.
const POSITION_STEP = 331n;

export function makeLog({ file, noisy }: StandInOptions) {
  const all: Stored[] = [];
  const streams = new Map<string, Stored[]>();
  const listeners = new Set<(event: Stored) => void>();

  const put = (event: Proposed): Stored => {
    const stream = streams.get(event.stream) ?? [];
    streams.set(event.stream, stream);
    const position = (all.at(-1)?.position ?? 0n) + POSITION_STEP;
    const stored = { ...event, revision: stream.length, position };
    all.push(stored);
    stream.push(stored);
    return stored;
  };
  const json = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64');
  const foreign = (stream: string): Stored =>
    put({
      stream,
      id: crypto.randomUUID(),
      type: '$statsCollected',
      contentType: 'application/json',
      data: json({ of: stream }),
      metadata: json({}),
      created: Date.now(),
    });
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

  return {
    all,
    streams,
    listeners,
    foreign: (stream: string): void => {
      const stored = foreign(stream);
      for (const listener of listeners) listener(stored);
    },
    /** Stores, recognises, or gives the revision that the stream ends at. */
    append(stream: string, expected: number, events: Proposed[]): Appended {
      const stored = streams.get(stream) ?? [];
      const last = stored.length - 1;
      if (expected !== last) {
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
      for (const event of written) for (const listener of listeners) listener(event);
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
