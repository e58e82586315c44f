/** Opens calls on the client's generated stubs: appends, and subscriptions. */
import type { Readable } from 'node:stream';
import { type BaseOptions, EventStoreDBClient } from '@eventstore/db-client';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { Client } from './address.ts';

/** What calls are made on. */
export type Stubs = InstanceType<typeof streamsGrpc.StreamsClient>;
/** What each call is sent with. */
export type CallArguments = ReturnType<Opener['callArguments']>;

/** The error that a call of the stubs ends with. */
export type GrpcError = Error & { code?: number; metadata?: { get(name: string): unknown[] } };

/** What finds the leader, and connects anew after an end, is a protected member of the client. */
class Opener extends EventStoreDBClient {
  static open<T extends Readable>(
    client: Client,
    options: BaseOptions,
    start: (stubs: Stubs, ...args: CallArguments) => T,
  ): Promise<T> {
    const { GRPCStreamCreator, callArguments } = client as Opener;
    const args = callArguments(options, { deadline: Number.POSITIVE_INFINITY });
    return GRPCStreamCreator(streamsGrpc.StreamsClient, 'call', (stubs) => start(stubs, ...args))();
  }
}

/**
 * Opens a call without a deadline as the client opens its own. `start` makes it, and listens to it
 * before anything can come. Rejects where no connection is found.
 */
export const openCall = Opener.open;
