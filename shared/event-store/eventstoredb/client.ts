import type { Readable } from 'node:stream';
import { type BaseOptions, EventStoreDBClient } from '@eventstore/db-client';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import { correct } from './client-corrections.ts';

const KEEP_ALIVE_MS = 10_000;

export type StoreClient = EventStoreDBClient;

export type Credentials = { username: string; password: string };

/** It and `client` throw Error with one line, which repeats nothing of the address. */
export function addressOf(url: string) {
  const match = /^esdb(\+discover)?:\/\/(?:([^:@/?]+):([^@/?]*)@)?[^@/?]+\/?(\?[^\s]*)?$/.exec(url);
  if (match === null) throw new Error('EVENTSTOREDB_URL must be esdb://host:port or similar');
  const [, , user, password, query = ''] = match;
  const isSecure = !/[?&]tls=false(&|$)/i.test(query);
  if (isSecure && user === undefined)
    throw new Error('EVENTSTOREDB_URL needs user:password@ unless it says tls=false');
  // Without TLS the server ignores credentials, so any will do.
  const credentials: Credentials = {
    username: decodeURIComponent(user ?? 'insecure'),
    password: decodeURIComponent(password ?? 'insecure'),
  };
  const joint = query === '' ? '?' : '&';
  return {
    isSecure,
    credentials,
    client: (turn = 0): StoreClient => {
      const keepAlive = `keepAliveInterval=${KEEP_ALIVE_MS + turn}&keepAliveTimeout=${KEEP_ALIVE_MS}`;
      try {
        return correct(EventStoreDBClient.connectionString(`${url}${joint}${keepAlive}`));
      } catch (error) {
        // The client's message repeats a part of the address, which holds a password.
        const { location, expected } = error as { location?: [from: number]; expected?: string };
        const detail = location && `: at character ${location[0]} ${expected} is expected`;
        throw new Error(`EVENTSTOREDB_URL cannot be read${detail ?? ''}`);
      }
    },
  };
}

export type Stubs = InstanceType<typeof streamsGrpc.StreamsClient>;
export type CallArguments = ReturnType<Opener['callArguments']>;

export type GrpcError = Error & { code?: number; metadata?: { get(name: string): unknown[] } };

/** A protected member of the client finds the leader, and connects anew after an end. */
class Opener extends EventStoreDBClient {
  static open<T extends Readable>(
    client: StoreClient,
    options: BaseOptions,
    start: (stubs: Stubs, ...args: CallArguments) => T,
  ): Promise<T> {
    const { GRPCStreamCreator, callArguments } = client as Opener;
    const args = callArguments(options, { deadline: Number.POSITIVE_INFINITY });
    return GRPCStreamCreator(streamsGrpc.StreamsClient, 'call', (stubs) => start(stubs, ...args))();
  }
}

/** No deadline; `start` listens before anything can come. Rejects without a connection. */
export const openCall = Opener.open;
