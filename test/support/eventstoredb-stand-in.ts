/**
 * A stand-in for EventStoreDB on a real socket: the gRPC services that our driver calls, built on
 * the client's own generated stubs, with the log in memory.
 *
 * It answers as a real server was seen to (23.10.6): exact revisions, the odd rules for repeated
 * appends, positions that are not counted, events of its own in the log, inclusive reads and
 * exclusive subscriptions. And it goes wrong on demand.
 *
 * What it is not: durable (its file is never synced), a cluster, protected by TLS or passwords, slow
 * as a disk is, or able to drop a slow reader by itself. It knows no links, metadata streams,
 * deletes, scavenges, projections, batch appends or filter checkpoints. A driver that passes here
 * has been tested for its use of the client and for its faults, not against the server.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import grpc, {
  type ServerReadableStream,
  type ServerWritableStream,
  type sendUnaryData,
} from '@grpc/grpc-js';

const { AppendResp, ReadResp } = streamsPb;
const { Empty, StreamIdentifier, UUID } = sharedPb;
type AppendReq = InstanceType<typeof streamsPb.AppendReq>;
type AppendRespMessage = InstanceType<typeof AppendResp>;
type ReadReq = InstanceType<typeof streamsPb.ReadReq>;
type ReadRespMessage = InstanceType<typeof ReadResp>;
type ReadOptions = NonNullable<ReturnType<ReadReq['getOptions']>>;
type ReadCall = ServerWritableStream<ReadReq, ReadRespMessage>;

/** What happens to a call: no answer, an end without one, a broken connection, an error, a delay. */
export type Fault = 'silent' | 'clean end' | 'reset' | 'unavailable' | 'not leader' | 'slow';
/** What only an append can meet: it is stored and its answer is lost, or it is told a wrong end. */
export type AppendFault = Fault | 'answer lost' | 'wrong revision';
/** How the running subscriptions end. */
export type Drop = 'too slow' | 'clean end' | 'reset' | 'not leader' | 'silent';

export type StandIn = {
  /** For EVENTSTOREDB_URL. */
  url: string;
  /** The next `count` calls of a kind meet this fault; undefined ends it. */
  fail(kind: 'append', fault: AppendFault | undefined, count?: number): void;
  fail(kind: 'read' | 'subscribe', fault: Fault | undefined, count?: number): void;
  drop(how: Drop): void;
  /** Takes calls and answers none of them until thawed; then it goes on where it stood. */
  freeze(on: boolean): void;
  /** Puts an event of somebody else at the end of the log. */
  foreign(stream: string): void;
  /** Changes the data of an event, JSON text, as somebody does who may write the server's files. */
  rewrite(stream: string, revision: number, change: (data: string) => string): void;
  /** How often each event id is stored: nothing of ours may be there twice. */
  idCounts(): Map<string, number>;
  calls: { append: number; read: number; subscribe: number };
  close(): Promise<void>;
};

export type StandInOptions = {
  port?: number;
  /** JSON lines, read at the start and added to: what is appended is there after a restart. */
  file?: string;
  /** After each append the server adds an event of its own, as statistics do. */
  noisy?: boolean;
};

type Stored = {
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

// A real position is an offset in bytes.
const POSITION_STEP = 331n;
const SLOW_MS = 60;
const TICKS_PER_MS = 10_000n;

const statusError = (code: grpc.status, details: string, metadata = new grpc.Metadata()) => ({
  name: 'Error',
  message: details,
  code,
  details,
  metadata,
});

const nameOf = (identifier: InstanceType<typeof StreamIdentifier> | undefined): string =>
  Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
const identifierOf = (stream: string) => {
  const identifier = new StreamIdentifier();
  identifier.setStreamName(Uint8Array.from(Buffer.from(stream, 'utf8')));
  return identifier;
};

function messageOf(event: Stored): ReadRespMessage {
  const recorded = new ReadResp.ReadEvent.RecordedEvent();
  const id = new UUID();
  id.setString(event.id);
  recorded.setId(id);
  recorded.setStreamIdentifier(identifierOf(event.stream));
  recorded.setStreamRevision(String(event.revision));
  recorded.setCommitPosition(String(event.position));
  recorded.setPreparePosition(String(event.position));
  recorded.getMetadataMap().set('type', event.type);
  recorded.getMetadataMap().set('content-type', event.contentType);
  recorded.getMetadataMap().set('created', String(BigInt(event.created) * TICKS_PER_MS));
  recorded.setData(event.data);
  recorded.setCustomMetadata(event.metadata);
  const read = new ReadResp.ReadEvent();
  read.setEvent(recorded);
  read.setCommitPosition(String(event.position));
  const message = new ReadResp();
  message.setEvent(read);
  return message;
}

/** The log and its streams, with the server's rules for appending. */
function makeLog({ file, noisy }: StandInOptions) {
  const all: Stored[] = [];
  const streams = new Map<string, Stored[]>();
  const listeners = new Set<(event: Stored) => void>();

  const put = (event: Omit<Stored, 'position' | 'revision'>): Stored => {
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
    append(stream: string, expected: number, events: Omit<Stored, 'position' | 'revision'>[]) {
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

type Log = ReturnType<typeof makeLog>;

/** The index of the first event at or after a position. */
function indexAt(all: Stored[], position: bigint): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((all[middle] as Stored).position < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

const FORWARDS = 0;

function streamPage(log: Log, options: ReadOptions): Stored[] | undefined {
  const stream = options.getStream();
  const stored = log.streams.get(nameOf(stream?.getStreamIdentifier()));
  if (stored === undefined) return undefined;
  const count = Number(options.getCount());
  const revision = Number(stream?.getRevision() ?? 0);
  if (options.getReadDirection() === FORWARDS) {
    const from = stream?.hasRevision() ? revision : stream?.hasEnd() ? stored.length : 0;
    return stored.slice(from, from + count);
  }
  const end = stream?.hasRevision() ? revision + 1 : stream?.hasEnd() ? stored.length : 1;
  return stored.slice(Math.max(0, end - count), end).reverse();
}

/** Forwards with the event at the position, backwards without it. */
function logPage({ all }: Log, options: ReadOptions): Stored[] {
  const from = options.getAll();
  const position = from?.getPosition();
  const count = Number(options.getCount());
  const at =
    position === undefined ? undefined : indexAt(all, BigInt(position.getCommitPosition()));
  if (options.getReadDirection() === FORWARDS) {
    const start = at ?? (from?.hasEnd() ? all.length : 0);
    return all.slice(start, start + count);
  }
  const end = at ?? (from?.hasEnd() ? all.length : 0);
  return all.slice(Math.max(0, end - count), end).reverse();
}

const filterOf = (options: ReadOptions): ((event: Stored) => boolean) => {
  const expression = options.getFilter()?.getStreamIdentifier();
  const prefixes = expression?.getPrefixList() ?? [];
  if (prefixes.length === 0) return () => true;
  return ({ stream }) => prefixes.some((prefix) => stream.startsWith(prefix));
};

/** Starts it. Port 0 (the default) takes any that is free. */
export async function startStandIn(options: StandInOptions = {}): Promise<StandIn> {
  const log = makeLog(options);
  const subscribers = new Map<ReadCall, () => void>();
  const faults: Partial<Record<string, { fault: AppendFault; left: number }>> = {};
  const calls = { append: 0, read: 0, subscribe: 0 };
  const waiting: (() => void)[] = [];
  let frozen = false;
  let port = 0;
  const server = new grpc.Server();

  const nextFault = (kind: string): AppendFault | undefined => {
    const planned = faults[kind];
    if (planned === undefined) return undefined;
    planned.left -= 1;
    if (planned.left <= 0) delete faults[kind];
    return planned.fault;
  };
  const whenThawed = (work: () => void): void => {
    if (frozen) waiting.push(work);
    else work();
  };
  const notLeader = () => {
    const metadata = new grpc.Metadata();
    metadata.set('exception', 'not-leader');
    metadata.set('leader-endpoint-host', '127.0.0.1');
    metadata.set('leader-endpoint-port', String(port));
    return statusError(grpc.status.NOT_FOUND, 'Leader info available', metadata);
  };
  const unavailable = () => statusError(grpc.status.UNAVAILABLE, 'Server Is Not Ready');
  const reset = (): void => server.drain(`127.0.0.1:${port}`, 1);

  function responseRead(call: ReadCall, page: Stored[] | undefined): void {
    if (page === undefined) {
      const missing = new ReadResp.StreamNotFound();
      missing.setStreamIdentifier(call.request.getOptions()?.getStream()?.getStreamIdentifier());
      const message = new ReadResp();
      message.setStreamNotFound(missing);
      call.write(message);
    }
    for (const event of page ?? []) call.write(messageOf(event));
    call.end();
  }

  function responseSubscription(call: ReadCall, request: ReadOptions): void {
    const matches = filterOf(request);
    const position = request.getAll()?.getPosition();
    const after = position === undefined ? -1n : BigInt(position.getCommitPosition());
    const confirmation = new ReadResp();
    confirmation.setConfirmation(new ReadResp.SubscriptionConfirmation());
    call.write(confirmation);
    const send = (event: Stored): void => {
      if (matches(event)) whenThawed(() => void call.write(messageOf(event)));
    };
    for (const event of log.all.slice(indexAt(log.all, after + 1n))) send(event);
    const caughtUp = new ReadResp();
    caughtUp.setCaughtUp(new ReadResp.CaughtUp());
    call.write(caughtUp);
    log.listeners.add(send);
    const leave = (): void => {
      log.listeners.delete(send);
      subscribers.delete(call);
    };
    subscribers.set(call, leave);
    call.on('cancelled', leave);
    call.on('close', leave);
  }

  /** True when the fault has dealt with the call. */
  function failedRead(call: ReadCall, fault: Fault | undefined): boolean {
    if (fault === 'silent') return true;
    if (fault === 'clean end') call.end();
    else if (fault === 'reset') reset();
    else if (fault === 'unavailable') call.emit('error', unavailable());
    else if (fault === 'not leader') call.emit('error', notLeader());
    else return false;
    return true;
  }

  function read(call: ReadCall): void {
    const request = call.request.getOptions();
    if (request === undefined) return void call.end();
    const kind = request.hasSubscription() ? 'subscribe' : 'read';
    calls[kind] += 1;
    call.on('error', () => undefined);
    whenThawed(() => {
      const fault = nextFault(kind) as Fault | undefined;
      if (failedRead(call, fault)) return;
      const response = (): void => {
        if (kind === 'subscribe') responseSubscription(call, request);
        else
          responseRead(
            call,
            request.hasStream() ? streamPage(log, request) : logPage(log, request),
          );
      };
      if (fault === 'slow') setTimeout(response, SLOW_MS);
      else response();
    });
  }

  function append(
    call: ServerReadableStream<AppendReq, AppendRespMessage>,
    callback: sendUnaryData<AppendRespMessage>,
  ): void {
    calls.append += 1;
    let request: ReturnType<AppendReq['getOptions']>;
    const events: Omit<Stored, 'position' | 'revision'>[] = [];
    call.on('error', () => undefined);
    call.on('data', (message: AppendReq) => {
      request ??= message.getOptions();
      const proposed = message.getProposedMessage();
      if (proposed === undefined) return;
      events.push({
        stream: nameOf(request?.getStreamIdentifier()),
        id: proposed.getId()?.getString() ?? '',
        type: proposed.getMetadataMap().get('type') ?? '',
        contentType: proposed.getMetadataMap().get('content-type') ?? '',
        data: proposed.getData_asB64(),
        metadata: proposed.getCustomMetadata_asB64(),
        created: Date.now(),
      });
    });
    call.on('end', () => whenThawed(() => responseAppend(nextFault('append'))));

    function responseAppend(fault: AppendFault | undefined): void {
      if (fault === 'silent') return;
      if (fault === 'reset') return void reset();
      if (fault === 'clean end') return void callback(null, null);
      if (fault === 'unavailable') return void callback(unavailable());
      if (fault === 'not leader') return void callback(notLeader());
      const stream = nameOf(request?.getStreamIdentifier());
      const expected = request?.hasNoStream() ? -1 : Number(request?.getRevision());
      const outcome =
        fault === 'wrong revision'
          ? { endsAt: (log.streams.get(stream)?.length ?? 0) - 1 }
          : log.append(stream, expected, events);
      if (fault === 'answer lost') return;
      const respond = (): void => callback(null, responseOf(outcome, expected));
      if (fault === 'slow') setTimeout(respond, SLOW_MS);
      else respond();
    }
  }

  server.addService(streamsGrpc.StreamsService as never, { read, append } as never);
  port = await new Promise<number>((resolve, reject) => {
    const address = `127.0.0.1:${options.port ?? 0}`;
    server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });

  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    fail(kind, fault, count = Number.POSITIVE_INFINITY) {
      if (fault === undefined) delete faults[kind];
      else faults[kind] = { fault, left: count };
    },
    drop(how) {
      if (how === 'reset') return void reset();
      for (const [call, leave] of [...subscribers]) {
        leave();
        if (how === 'clean end') call.end();
        else if (how === 'not leader') call.emit('error', notLeader());
        else if (how === 'too slow') {
          const details =
            'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.';
          call.emit('error', statusError(grpc.status.ABORTED, details));
        }
      }
    },
    freeze(on) {
      frozen = on;
      if (!on) for (const work of waiting.splice(0)) work();
    },
    foreign: log.foreign,
    rewrite(stream, revision, change) {
      const event = log.streams.get(stream)?.[revision];
      if (event === undefined) throw new Error('no such event');
      const data = change(Buffer.from(event.data, 'base64').toString());
      event.data = Buffer.from(data).toString('base64');
    },
    idCounts: () => {
      const counts = new Map<string, number>();
      for (const { id } of log.all) counts.set(id, (counts.get(id) ?? 0) + 1);
      return counts;
    },
    calls,
    async close() {
      server.forceShutdown();
    },
  };
}

function responseOf(
  outcome: { stored: Stored[] } | { endsAt: number },
  expected: number,
): AppendRespMessage {
  const response = new AppendResp();
  if ('stored' in outcome) {
    const last = outcome.stored.at(-1) as Stored;
    const success = new AppendResp.Success();
    success.setCurrentRevision(String(last.revision));
    // One position for the whole batch, as the server does.
    const position = new AppendResp.Position();
    position.setCommitPosition(String(last.position));
    position.setPreparePosition(String(last.position));
    success.setPosition(position);
    response.setSuccess(success);
    return response;
  }
  const wrong = new AppendResp.WrongExpectedVersion();
  if (outcome.endsAt < 0) wrong.setCurrentNoStream(new Empty());
  else wrong.setCurrentRevision(String(outcome.endsAt));
  if (expected < 0) wrong.setExpectedNoStream(new Empty());
  else wrong.setExpectedRevision(String(expected));
  response.setWrongExpectedVersion(wrong);
  return response;
}
