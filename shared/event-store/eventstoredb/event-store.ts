/**
 * The event store in EventStoreDB, through its gRPC client. Each precaution has its reason in
 * ADR-0007 and ADR-0031 to ADR-0036; the client is imported by this file alone.
 */
import { randomUUID } from 'node:crypto';
import {
  BACKWARDS,
  END,
  EventStoreDBClient,
  FORWARDS,
  jsonEvent,
  NO_STREAM,
  START,
  streamNameFilter,
} from '@eventstore/db-client';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { type EncodedEvent, encode, isReadable } from '../codec.ts';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreUnavailable,
  UnreadableStream,
} from '../errors.ts';
import type { EventStore, Expected, RecordedEvent, UnreadableEvent } from '../port.ts';
import {
  type Call,
  callOutcomeOf,
  jittered,
  lineOf,
  pause,
  unavailable,
  within,
} from './call-server.ts';
import {
  comparePositions,
  fromServer,
  hashOfRecord,
  isOurs,
  type LogPosition,
  parsePosition,
  positionText,
  type ServerEvent,
  STREAM_PREFIXES,
  storedFormOf,
  timeOfRecord,
  toServer,
} from './records.ts';
import { type Source, subscribeForGood } from './subscription.ts';

const CALL_TIMEOUT_MS = 5000;
const PING_TIMEOUT_MS = 2000;
const SILENCE_MS_MAX = 10_000;
const APPEND_TRIES_MAX = 5;
const READ_TRIES_MAX = 2;
const RETRY_MS = { min: 50, max: 800 };
// Clients with equal options share a connection. This many take turns, so that a store that is dead
// for days costs no more than their connections.
const CLIENTS_MAX = 8;
const KEEP_ALIVE_MS = 10_000;
const KNOWN_ENDS_MAX = 20_000;
const PAGE_EVENTS = 1000;
/** Up to here `head` counts exactly; beyond, the true number is at least this. */
export const COUNTED_EVENTS_MAX = 10_000;

export type EventStoreDbLogger = {
  debug(details: object, message: string): void;
  warn(details: object, message: string): void;
};

export type EventStoreDbOptions = {
  /** `esdb://[user:password@]host:port[,host:port…][?tls=false&…]`, or `esdb+discover://…`. */
  url: string;
  logger: EventStoreDbLogger;
  /** The time in which every call ends, its repeats included: 5 s. */
  callTimeoutMs?: number;
  /** After so long without a sign of life a subscription is compared with the log: 10 s. */
  silenceMsMax?: number;
  /** Between two tries to subscribe: 0.1 to 5 s, jittered. */
  backOffMs?: { min: number; max: number };
};

/** Counters since the store was opened. */
export type EventStoreDbStats = {
  appends: number;
  events: number;
  /** Appends sent once more because their outcome was unknown or the server turned them away. */
  retries: number;
  /** New clients, each after two exceeded deadlines in a row. */
  renewals: number;
  /** Subscriptions made anew after an end of whatever kind. */
  resubscriptions: number;
};

export type EventStoreDb = EventStore & {
  /** For health: resolves when the store answers a read, within 2 s. Throws StoreUnavailable. */
  ping(): Promise<void>;
  stats(): EventStoreDbStats;
};

type Client = EventStoreDBClient;
type Reading = ReturnType<Client['readAll']> | ReturnType<Client['readStream']>;

const swallow = (): undefined => undefined;

/**
 * The address with our keep-alive settings, and the credentials every append is given: without them
 * the client takes a path on which a lost answer leaves the append pending for ever.
 */
function addressOf(url: string) {
  const match = /^esdb(\+discover)?:\/\/(?:([^:@/?]+):([^@/?]*)@)?[^@/?]+\/?(\?[^\s]*)?$/.exec(url);
  if (match === null) throw new Error('EVENTSTOREDB_URL must be esdb://host:port or similar');
  const [, , user, password, query = ''] = match;
  const isSecure = !/[?&]tls=false(&|$)/i.test(query);
  if (isSecure && user === undefined) {
    throw new Error('EVENTSTOREDB_URL needs user:password@ unless it says tls=false');
  }
  // Without TLS the server ignores them, so any will do.
  const [username, secret] = [user ?? 'insecure', password ?? 'insecure'];
  const credentials = {
    username: decodeURIComponent(username),
    password: decodeURIComponent(secret),
  };
  const joint = query === '' ? '?' : '&';
  return {
    credentials,
    client: (turn: number): Client =>
      EventStoreDBClient.connectionString(
        `${url}${joint}keepAliveInterval=${KEEP_ALIVE_MS + turn}&keepAliveTimeout=${KEEP_ALIVE_MS}`,
      ),
  };
}

function firstClient(address: ReturnType<typeof addressOf>): Client {
  try {
    return address.client(0);
  } catch (error) {
    // The address holds a password, and the client's message a part of the address.
    const place = /position (\d+), expected (.+)\.$/.exec((error as Error).message);
    const detail = place === null ? '' : `: at character ${place[1]} ${place[2]} is expected`;
    throw new Error(`EVENTSTOREDB_URL cannot be read${detail}`);
  }
}

/** Collects a read. What the stream does after its end, or after it was cancelled, is swallowed. */
function collect(stream: Reading): Call<ServerEvent[]> {
  const response = new Promise<ServerEvent[]>((resolve, reject) => {
    const events: ServerEvent[] = [];
    stream.on('data', ({ event }: { event?: ServerEvent }) => {
      if (event !== undefined) events.push(event);
    });
    stream.on('end', () => resolve(events));
    stream.on('close', () => reject(new Error('the read was closed before its end')));
    stream.on('error', reject);
  });
  // A read that is left without being cancelled would hold up the client's own end.
  return { response, cancel: () => void stream.cancel().catch(swallow) };
}

/** The clients that take turns, and the guard around each call of theirs. */
function connect({ url, logger, callTimeoutMs = CALL_TIMEOUT_MS }: EventStoreDbOptions) {
  const address = addressOf(url);
  const clients = [firstClient(address)];
  const stats: EventStoreDbStats = {
    appends: 0,
    events: 0,
    retries: 0,
    renewals: 0,
    resubscriptions: 0,
  };
  let turn = 0;
  let overdueInRow = 0;
  let opened = true;

  const current = (): Client => {
    clients[turn] ??= address.client(turn);
    return clients[turn] as Client;
  };

  // An exceeded deadline does not make the client look for another connection.
  const overdue = (during: number): void => {
    if (during !== turn || !opened) return;
    overdueInRow += 1;
    if (overdueInRow < 2) return;
    overdueInRow = 0;
    turn = (turn + 1) % CLIENTS_MAX;
    stats.renewals += 1;
    logger.debug({ renewals: stats.renewals }, 'event store: no answer twice, a new client');
  };

  /** One call of the client, ended by our own time-out. Throws what the client throws, or Overdue. */
  async function once<T>(ms: number, start: (client: Client) => Call<T>): Promise<T> {
    const during = turn;
    try {
      const value = await within(ms, start(current()));
      if (during === turn) overdueInRow = 0;
      return value;
    } catch (error) {
      if (callOutcomeOf(error) === 'overdue') overdue(during);
      else if (during === turn) overdueInRow = 0;
      throw error;
    }
  }

  /** A read, within the time of one call; undefined for a stream that there is not. */
  async function read(
    start: (client: Client) => Reading,
    { ms = callTimeoutMs, attempts = READ_TRIES_MAX } = {},
  ): Promise<ServerEvent[] | undefined> {
    const endsAt = performance.now() + ms;
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(endsAt - performance.now(), (client) => collect(start(client)));
      } catch (error) {
        const outcome = callOutcomeOf(error);
        if (outcome === 'missing') return undefined;
        const waitMs = jittered(RETRY_MS.min * 2);
        const late = performance.now() + waitMs >= endsAt;
        if (attempt >= attempts || late || outcome === 'refused' || outcome === 'overdue') {
          throw unavailable(error);
        }
        await pause(waitMs);
      }
    }
  }

  return {
    callTimeoutMs,
    credentials: address.credentials,
    stats,
    current,
    once,
    read,
    async close(): Promise<void> {
      opened = false;
      const ending = Promise.all(clients.map((client) => client?.dispose()));
      // Nothing waits for the client's own end: what it still holds is cancelled.
      await within(1000, { response: ending }).catch(swallow);
    },
  };
}

type Connection = ReturnType<typeof connect>;

function allReadable(events: (RecordedEvent | UnreadableEvent)[]): RecordedEvent[] {
  return events.map((event, at) => {
    if (isReadable(event)) return event;
    const { stream, revision, unreadable } = event;
    const before = events.slice(0, at).filter(isReadable);
    throw new UnreadableStream(`${stream}, revision ${revision}: ${unreadable}`, before);
  });
}

/** The hash at the last known revision of the streams in use: saves the read that would ask for it. */
function knownEnds() {
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

type KnownEnds = ReturnType<typeof knownEnds>;

const endedWithoutResponse = (): StoreUnavailable =>
  new StoreUnavailable('event store: the server ended a read without an answer');

function streamReaders({ read }: Connection, ends: KnownEnds) {
  // A stream that is there holds an event, and one that is not is said to be missing.
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
      const events = allReadable((await whole(stream)).map(fromServer));
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

type StreamReaders = ReturnType<typeof streamReaders>;

const placeOf = (event: ServerEvent | undefined): LogPosition | undefined => event?.position;

function logReaders({ read }: Connection) {
  const backwards = (from: LogPosition | undefined, maxCount: number, limits?: object) =>
    read(
      (client) =>
        client.readAll({
          direction: BACKWARDS,
          fromPosition: from ?? END,
          maxCount,
          requiresLeader: true,
        }),
      limits,
    );
  const forwards = (from: LogPosition | undefined, maxCount: number) =>
    read((client) =>
      client.readAll({
        direction: FORWARDS,
        fromPosition: from ?? START,
        maxCount,
        requiresLeader: true,
      }),
    );

  async function newest(limits?: object): Promise<ServerEvent> {
    const [event] = (await backwards(undefined, 1, limits)) ?? [];
    // Every server has events of its own before the first of ours.
    if (event === undefined) throw endedWithoutResponse();
    return event;
  }

  /** Nothing at all was read: either it lies past the end, or the server did not answer. */
  async function mustLiePastEnd(position: LogPosition | undefined): Promise<void> {
    if (comparePositions((await newest()).position, position) >= 0) throw endedWithoutResponse();
  }

  /** Pages of the log after a position, system events and all. A read includes its own position. */
  async function* pagesAfter(after: LogPosition | undefined, limit: number) {
    let from = after;
    // The first page is small for a reader that wants little and finds it there.
    for (let size = Math.max(limit, 100); ; size = PAGE_EVENTS) {
      const count = Math.min(PAGE_EVENTS, size) + 1;
      const page = (await forwards(from, count)) ?? [];
      if (page.length === 0) await mustLiePastEnd(from);
      const fresh = page.filter((event) => comparePositions(event.position, from) > 0);
      yield fresh;
      if (page.length < count || fresh.length === 0) return;
      from = placeOf(fresh.at(-1));
    }
  }

  /** Up to `limit` events of ours after a position. The server cannot filter this read. */
  async function ownAfter(after: LogPosition | undefined, limit: number): Promise<ServerEvent[]> {
    const own: ServerEvent[] = [];
    if (limit <= 0) return own;
    for await (const page of pagesAfter(after, limit)) {
      own.push(...page.filter(({ streamId }) => isOurs(streamId)));
      if (own.length >= limit) break;
    }
    return own.slice(0, limit);
  }

  /** The last event of ours: the server's own events behind it are not what a reader waits for. */
  async function lastOwn(): Promise<ServerEvent | undefined> {
    let from: LogPosition | undefined;
    for (let count = 32; ; count = PAGE_EVENTS) {
      const page = (await backwards(from, count)) ?? [];
      if (page.length === 0 && from === undefined) throw endedWithoutResponse();
      const found = page.find(({ streamId }) => isOurs(streamId));
      const oldest = placeOf(page.at(-1));
      if (found !== undefined) return found;
      if (page.length < count || comparePositions(oldest, from) === 0) return undefined;
      from = oldest;
    }
  }

  async function hashAt(position: LogPosition | undefined): Promise<string | null> {
    const [event] = (await forwards(position, 1)) ?? [];
    if (event === undefined) await mustLiePastEnd(position);
    const isThere = event !== undefined && comparePositions(event.position, position) === 0;
    return isThere ? hashOfRecord(event) : null;
  }

  async function countAfter(after: LogPosition | undefined) {
    let count = 0;
    let oldest: string | null = null;
    for await (const page of pagesAfter(after, PAGE_EVENTS)) {
      const own = page.filter(({ streamId }) => isOurs(streamId));
      if (count === 0 && own[0] !== undefined) oldest = timeOfRecord(own[0]);
      count += own.length;
      if (count >= COUNTED_EVENTS_MAX) break;
    }
    return { eventsAfter: count, oldestAfter: oldest };
  }

  return { newest, ownAfter, lastOwn, hashAt, countAfter };
}

type LogReaders = ReturnType<typeof logReaders>;

const headOf =
  ({ lastOwn, countAfter }: LogReaders): EventStore['head'] =>
  async (after) => {
    const from = parsePosition(after);
    const last = await lastOwn();
    if (last === undefined) return { position: null, eventsAfter: 0, oldestAfter: null };
    const position = positionText(last.position);
    if (comparePositions(last.position, from) <= 0) {
      return { position, eventsAfter: 0, oldestAfter: null };
    }
    return { position, ...(await countAfter(from)) };
  };

type Proposed = ReturnType<typeof toServer>;
/** What became of an append: stored at a position that the server may not name, or another's turn. */
type Sent = { position: LogPosition | undefined } | { conflict: number };

/** Sends a batch until its outcome is known, or its time is over. */
function sender({ once, credentials, callTimeoutMs, stats }: Connection) {
  const attempt = (stream: string, after: number, batch: Proposed[], ms: number) =>
    once(ms, (client) => ({
      response: client.appendToStream(stream, batch.map(jsonEvent), {
        // seeded bug: eventstoredb-expected
        expectedRevision: after < 0 ? NO_STREAM : BigInt(after),
        credentials,
        requiresLeader: true,
        deadline: Math.ceil(ms),
      }),
    }));

  /**
   * Always the same ids at the same revision: at a newer revision the server would store the batch
   * a second time. Throws StoreUnavailable or AppendOutcomeUnknown.
   */
  return async (stream: string, after: number, batch: Proposed[]): Promise<Sent> => {
    const endsAt = performance.now() + callTimeoutMs;
    let mayBeStored = false;
    for (let attempts = 1; ; attempts++) {
      // Two tries that get no answer leave time for a third, on a new client.
      const ms = Math.min(endsAt - performance.now(), callTimeoutMs * 0.4);
      try {
        const { position } = await attempt(stream, after, batch, ms);
        return { position };
      } catch (error) {
        const outcome = callOutcomeOf(error);
        // seeded bug: eventstoredb-conflict
        if (outcome === 'conflict') return { conflict: actualRevision(error) };
        mayBeStored ||= outcome === 'unknown' || outcome === 'overdue';
        // Who waited for an answer has waited enough.
        const longerMs = outcome === 'overdue' ? 0 : RETRY_MS.min * 2 ** attempts;
        const waitMs = jittered(Math.min(RETRY_MS.max, Math.max(RETRY_MS.min, longerMs)));
        // A try needs some time of its own, or it would only make a known outcome unknown.
        const late = performance.now() + waitMs + callTimeoutMs * 0.1 >= endsAt;
        if (attempts >= APPEND_TRIES_MAX || late || outcome === 'refused') {
          throw mayBeStored ? new AppendOutcomeUnknown(lineOf(error)) : unavailable(error);
        }
        stats.retries += 1;
        await pause(waitMs);
      }
    }
  };
}

const actualRevision = (error: unknown): number => {
  const { actualVersion } = error as { actualVersion?: unknown };
  return typeof actualVersion === 'bigint' ? Number(actualVersion) : -1;
};

function appender(connection: Connection, streams: StreamReaders, ends: KnownEnds) {
  const send = sender(connection);
  const { stats } = connection;

  /** The server knows nothing of hashes: whoever expects another one has read another stream. */
  async function checkHash(stream: string, expected: Exclude<Expected, 'none'>): Promise<void> {
    const { revision, hash } = expected;
    let stored = ends.at(stream, revision);
    if (stored === undefined) {
      const [event] = await streams.part(stream, revision, 1);
      stored = event === undefined ? undefined : hashOfRecord(event);
    }
    if (stored !== hash) throw new RevisionConflict(`${stream} does not have that hash there`);
  }

  /** What is stored at the place of the batch when it is this batch, else undefined. */
  async function storedBatch(stream: string, first: number, encoded: EncodedEvent[]) {
    const found = await streams.part(stream, first, encoded.length);
    const same =
      found.length === encoded.length &&
      found.every(({ id }, index) => id === encoded[index]?.recorded.id);
    return same ? found : undefined;
  }

  async function afterConflict(
    stream: string,
    first: number,
    encoded: EncodedEvent[],
    last: number,
  ): Promise<RecordedEvent[]> {
    const conflict = new RevisionConflict(`${stream} ends at revision ${last}`);
    if (last < first + encoded.length - 1) throw conflict;
    const found = await storedBatch(stream, first, encoded).catch((error: Error) => {
      // It may be this very append that stands there, from a try whose answer was lost.
      throw new AppendOutcomeUnknown(error.message);
    });
    if (found === undefined) throw conflict;
    return allReadable(found.map(fromServer));
  }

  /** The server names one position for a batch; the others have to be read. */
  async function placed(
    stream: string,
    first: number,
    encoded: EncodedEvent[],
    position: LogPosition | undefined,
  ): Promise<RecordedEvent[]> {
    const isKnown = encoded.length === 1 && position !== undefined;
    const places = isKnown
      ? [position]
      : // It is stored: a position that cannot be read now is no reason to say anything else.
        ((await storedBatch(stream, first, encoded).catch(swallow)) ?? []).map(placeOf);
    return encoded.map(({ recorded }, index) =>
      Object.assign(recorded, { position: positionText(places[index]) }),
    );
  }

  return async (stream: string, expected: Expected, encoded: EncodedEvent[]) => {
    if (expected !== 'none') await checkHash(stream, expected);
    const after = expected === 'none' ? -1 : expected.revision;
    const sent = await send(stream, after, encoded.map(toServer));
    const events =
      'conflict' in sent
        ? await afterConflict(stream, after + 1, encoded, sent.conflict)
        : await placed(stream, after + 1, encoded, sent.position);
    ends.learn(events.at(-1));
    stats.appends += 1;
    stats.events += events.length;
    return events;
  };
}

/** Only an exact place is one: the server itself would take "any" for an answer. */
function rejectAny(expected: Expected): void {
  if (expected === 'none') return;
  const { revision, hash } = Object(expected) as { revision: unknown; hash: unknown };
  if (!Number.isSafeInteger(revision) || Number(revision) < 0 || typeof hash !== 'string') {
    throw new TypeError('an append expects "none", or a revision and its hash');
  }
}

/** The first writer's value is the first event of a stream of its own. */
function metaClaims(connection: Connection, { whole }: StreamReaders) {
  const send = sender(connection);
  const standing = async (stream: string): Promise<string | undefined> => {
    const [first] = await whole(stream);
    return first === undefined ? undefined : String(Object(first.data).value);
  };
  return async (key: string, value: string): Promise<string> => {
    if (!/^[A-Za-z0-9_-]{1,100}$/.test(key)) throw new TypeError('not a key for a value');
    const stream = `meta-${key}`;
    const stands = await standing(stream);
    if (stands !== undefined) return stands;
    const claim = { id: randomUUID(), type: 'ValueClaimed', data: { value }, metadata: {} };
    await send(stream, -1, [claim as Proposed]).catch((error) => {
      throw unavailable(error);
    });
    const now = await standing(stream);
    if (now === undefined) throw endedWithoutResponse();
    return now;
  };
}

function sourceOf(
  { current }: Connection,
  from: LogPosition | undefined,
  alive: () => void,
): Source {
  const filter = streamNameFilter({
    prefixes: [...STREAM_PREFIXES],
    maxSearchWindow: 1000,
    checkpointInterval: 32,
    checkpointReached: async () => alive(),
  });
  const subscription = current().subscribeToAll({ fromPosition: from ?? START, filter });
  return Object.assign(subscription, {
    cancel: () => void subscription.unsubscribe().catch(swallow),
  }) as unknown as Source;
}

/**
 * Opens the store. Does not wait for the server, which may start later. Throws Error with one line
 * for an address that cannot be read; the line repeats nothing of it, for it may hold a password.
 */
export async function openEventStoreDb(options: EventStoreDbOptions): Promise<EventStoreDb> {
  const connection = connect(options);
  const { callTimeoutMs, stats } = connection;
  const ends = knownEnds();
  const streams = streamReaders(connection, ends);
  const log = logReaders(connection);
  const appendBatch = appender(connection, streams, ends);
  const claim = metaClaims(connection, streams);
  const closing = new AbortController();
  const underWay = new Set<Promise<unknown>>();
  let closed: Promise<void> | undefined;

  /** Refused once the store is closed, waited for while it is being closed. */
  async function resilient<T>(work: () => Promise<T>): Promise<T> {
    if (closed !== undefined) throw new StoreUnavailable('the event store is closed');
    const working = work();
    underWay.add(working);
    try {
      return await working;
    } finally {
      underWay.delete(working);
    }
  }

  return {
    append: (stream, expected, events) =>
      resilient(async () => {
        rejectAny(expected);
        return appendBatch(stream, expected, encode(stream, expected, events));
      }),
    readStream: (stream) => resilient(() => streams.readStream(stream)),
    lastRevision: (stream) => resilient(() => streams.lastRevision(stream)),
    readAll: (after, limit) =>
      resilient(async () => (await log.ownAfter(parsePosition(after), limit)).map(fromServer)),
    hashAt: (position) => resilient(() => log.hashAt(parsePosition(position))),
    head: (after) => resilient(() => headOf(log)(after)),
    claimMeta: (key, value) => resilient(() => claim(key, value)),
    ping: () =>
      resilient(async () => void (await log.newest({ ms: pingMs(callTimeoutMs), attempts: 1 }))),
    stats: () => ({ ...stats }),
    subscribe: (after, signal) =>
      subscribeForGood(
        {
          open: (from, alive) => sourceOf(connection, from, alive),
          lags: async (from) => comparePositions(placeOf(await log.lastOwn()), from) > 0,
          confirmMsMax: callTimeoutMs,
          silenceMsMax: options.silenceMsMax ?? SILENCE_MS_MAX,
          ...(options.backOffMs === undefined ? {} : { backOffMs: options.backOffMs }),
          logger: options.logger,
          returned: () => {
            stats.resubscriptions += 1;
          },
        },
        after,
        AbortSignal.any([signal, closing.signal]),
      ),
    stored: {
      guarantee: 'stream',
      readStream: (stream) =>
        resilient(async () => (await streams.whole(stream)).map(storedFormOf)),
      readAll: (after, limit) =>
        resilient(async () => (await log.ownAfter(parsePosition(after), limit)).map(storedFormOf)),
    },
    close() {
      closing.abort();
      closed ??= Promise.allSettled(underWay).then(() => connection.close());
      return closed;
    },
  };
}

const pingMs = (callTimeoutMs: number): number => Math.min(callTimeoutMs, PING_TIMEOUT_MS);
