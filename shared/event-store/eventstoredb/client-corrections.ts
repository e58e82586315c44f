/** Corrects inner parts of @eventstore/db-client 6.2.1 (discontinued); others fail at the first connection. */
import type { EventStoreDBClient } from '@eventstore/db-client';

type Metadata = { set(name: string, value: string): void };
type Filter = Record<
  'receiveMetadata' | 'sendMessage' | 'receiveMessage' | 'receiveTrailers',
  (value: unknown) => unknown
> & { sendMetadata(metadata: Promise<Metadata>): Promise<Metadata> };
type Channel = {
  internalChannel: { filterStackFactory: { factories: { createFilter(): Filter }[] } };
};
type Inner = {
  handleError(...args: unknown[]): Promise<void>;
  createChannel(): Promise<Channel>;
};

const unchanged = (value: unknown): unknown => value;

/** Behind gRPC's own filter, which offers gzip in every call and knows no option against it. */
const withoutCompression: Filter = {
  sendMetadata: async (metadata) => {
    const headers = await metadata;
    headers.set('grpc-accept-encoding', 'identity');
    return headers;
  },
  receiveMetadata: unchanged,
  sendMessage: unchanged,
  receiveMessage: unchanged,
  receiveTrailers: unchanged,
};

/**
 * After a failed call the client looks for the next leader and drops the promise: where a cluster has none for
 * a second, its rejection would end the process. The next call looks anew, and rejects to its own caller.
 */
const dropNoRejection = (inner: Inner): void => {
  const handle = inner.handleError;
  inner.handleError = (...args) => handle(...args).catch(() => undefined);
};

/** From KurrentDB 25.1 on a server compresses each message for a client that offers it: twice the CPU. */
const offerNoCompression = (inner: Inner): void => {
  const create = inner.createChannel;
  inner.createChannel = async () => {
    const channel = await create();
    channel.internalChannel.filterStackFactory.factories.push({
      createFilter: () => withoutCompression,
    });
    return channel;
  };
};

/** Before its first call. */
export const correct = <C extends EventStoreDBClient>(client: C): C => {
  const inner = client as unknown as Inner;
  dropNoRejection(inner);
  offerNoCompression(inner);
  return client;
};
