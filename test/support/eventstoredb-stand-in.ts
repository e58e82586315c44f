/**
 * A stand-in for EventStoreDB on a real socket: the gRPC services that our driver calls, built on
 * the client's own generated stubs, with the log in memory.
 *
 * It answers as a real server was seen to (23.10.6, 24.10.9 and 26.1.0): exact revisions, the odd rules for repeated
 * appends, positions that are not counted, events of its own in the log, inclusive reads and
 * exclusive subscriptions. And it goes wrong on demand.
 *
 * What it is not: durable (its file is never synced), a cluster, slow
 * as a disk is, or able to drop a slow reader by itself. It knows no links, no `$maxAge`, projections
 * or filter checkpoints. A driver that passes here has been tested for its use of the client and for
 * its faults, not against the server.
 */
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import grpc from '@grpc/grpc-js';
import { makeAppends } from './eventstoredb-stand-in/appends.ts';
import { makeBatchAppends } from './eventstoredb-stand-in/batch-appends.ts';
import { makeDeletes } from './eventstoredb-stand-in/deletes.ts';
import { type AppendFault, type Fault, makeFaults } from './eventstoredb-stand-in/faults.ts';
import { addIdentity } from './eventstoredb-stand-in/identity.ts';
import { makeLog, type StandInOptions } from './eventstoredb-stand-in/log.ts';
import { makeReads } from './eventstoredb-stand-in/reads.ts';
import { forUser } from './eventstoredb-stand-in/users.ts';

export type StandIn = Awaited<ReturnType<typeof startStandIn>>;

const APPEND_BYTES_MAX = 1024 * 1024;

const credentialsOf = ({ certificate }: StandInOptions): grpc.ServerCredentials => {
  if (certificate === undefined) return grpc.ServerCredentials.createInsecure();
  const [private_key, cert_chain] = [certificate.key, certificate.cert].map((pem) =>
    Buffer.from(pem),
  ) as [Buffer, Buffer];
  return grpc.ServerCredentials.createSsl(null, [{ private_key, cert_chain }]);
};

/** Starts it. Port 0 (the default) takes any that is free. */
export async function startStandIn(options: StandInOptions = {}) {
  const log = makeLog(options);
  /**
   * `append` counts those on a stream of appends too, `appendStream` the streams; `read` counts every
   * read, `readAll` those of the whole log among them; `sent` the events that went to subscriptions,
   * `gossip` the looks for the leader.
   */
  const calls = {
    append: 0,
    appendStream: 0,
    read: 0,
    readAll: 0,
    subscribe: 0,
    sent: 0,
    gossip: 0,
  };
  let port = 0;
  const server = new grpc.Server();
  const faults = makeFaults(server, () => port);
  const countRead = (kind: 'read' | 'readAll' | 'subscribe' | 'sent'): void => {
    calls[kind] += 1;
  };
  const reads = makeReads(log, faults, countRead, options.marksEachEvent);
  const append = makeAppends(log, faults, () => {
    calls.append += 1;
  });

  const appendBytesMax = options.appendBytesMax ?? APPEND_BYTES_MAX;
  const respondToBatches = makeBatchAppends(log, faults, appendBytesMax, () => {
    calls.append += 1;
  });
  const batchAppend: typeof respondToBatches = (call) => {
    calls.appendStream += 1;
    respondToBatches(call);
  };
  const handlers = {
    read: reads.read,
    append,
    batchAppend,
    ...makeDeletes(log, options.refusesDeletes),
  };

  server.addService(streamsGrpc.StreamsService as never, forUser(options.user, handlers) as never);
  const countGossip = (): void => {
    calls.gossip += 1;
  };
  addIdentity(server, () => port, faults.isElecting, countGossip, options);
  port = await new Promise<number>((resolve, reject) => {
    const address = `127.0.0.1:${options.port ?? 0}`;
    server.bindAsync(address, credentialsOf(options), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });

  return {
    /** For EVENTSTOREDB_URL; without TLS and a user. */
    url: `esdb://127.0.0.1:${port}?tls=false`,
    /** The same as an address of a cluster, whose members the client asks for the leader. */
    clusterUrl: `esdb+discover://127.0.0.1:${port}?tls=false`,
    /** The next `count` calls of a kind meet this fault; undefined ends it. */
    fail<K extends 'append' | 'read' | 'subscribe'>(
      kind: K,
      fault: (K extends 'append' ? AppendFault : Fault) | undefined,
      count: number = Number.POSITIVE_INFINITY,
    ): void {
      faults.plan(kind, fault, count);
    },
    drop: reads.drop,
    /** Whether its user may not read $all. */
    refuseAll: reads.refuseAll,
    /** Its cluster has no leader until this ends: gossip names none, and each call is unavailable. */
    elect: faults.elect,
    /** Takes calls and answers none of them until thawed; then it goes on where it stood. */
    freeze: faults.freeze,
    /** Puts a foreign event at the end of the log. */
    foreign: log.foreign,
    /** Deletes a stream so that it can go on: it reads as not found, and an append begins it anew. */
    softDelete: log.softDelete,
    /** Deletes a stream for good. */
    tombstone: log.tombstone,
    /** Cuts off what comes before a revision, by the stream's metadata. */
    truncate: (stream: string, before: number): void => log.metadata(stream, { $tb: before }),
    /** Sets the metadata of a stream, which may leave out events of it, or refuse it to the service's user. */
    metadata: log.metadata,
    /** Appends an event as any client may, with or without metadata of ours; the texts are JSON, unless `contentType` says otherwise. */
    append(
      stream: string,
      {
        id,
        type,
        data,
        metadata = '',
        contentType = 'application/json',
      }: { type: string; data: string; metadata?: string; contentType?: string; id?: string },
    ): void {
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      log.append(stream, (log.streams.get(stream)?.length ?? 0) - 1, [
        {
          stream,
          id: id ?? crypto.randomUUID(),
          type,
          contentType,
          data: base64(data),
          metadata: base64(metadata),
          created: Date.now(),
        },
      ]);
    },
    /** Takes what was deleted or cut out of the log. */
    scavenge: log.scavenge,
    /** Changes the data of an event, JSON text, as a writer of the server's files does. */
    rewrite(stream: string, revision: number, change: (data: string) => string): void {
      const event = log.streams.get(stream)?.[revision];
      if (event === undefined) throw new Error('no such event');
      const data = change(Buffer.from(event.data, 'base64').toString());
      event.data = Buffer.from(data).toString('base64');
    },
    streams: (): Iterable<string> => log.streams.keys(),
    /** What the events of a stream say, from its first. */
    dataOf: (stream: string): unknown[] =>
      (log.streams.get(stream) ?? []).map(({ data }) =>
        JSON.parse(Buffer.from(data, 'base64').toString()),
      ),
    edit: log.edit,
    /** How often each event id is stored: nothing of ours may be there twice. */
    idCounts: (): Map<string, number> => {
      const counts = new Map<string, number>();
      for (const { id } of log.all) counts.set(id, (counts.get(id) ?? 0) + 1);
      return counts;
    },
    calls,
    close: async (): Promise<void> => server.forceShutdown(),
  };
}
