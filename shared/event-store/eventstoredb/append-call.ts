/** One try of an append: on the BatchAppend stream of its client, or as a unary call to an old server. */
import { jsonEvent, NO_STREAM } from '@eventstore/db-client';
import { type AppendRequest, type Stored, tooLarge } from './batch-messages.ts';
import { createBatchStream } from './batch-stream.ts';
import type { Call } from './call-outcome.ts';
import type { Client, Credentials } from './client.ts';
import type { Proposed } from './records.ts';

// The server's limit for one append. A larger one on the stream could end it for all others.
const APPEND_BYTES_MAX = 1024 * 1024;
const UNIMPLEMENTED = 12;

/** Counted as the server does: a type in UTF-16. */
const bytesOf = (batch: Proposed[]): number =>
  batch.reduce(
    (sum, { type, data, metadata }) => sum + 2 * type.length + data.length + metadata.length,
    0,
  );

const parsed = (json: Uint8Array) => JSON.parse(Buffer.from(json).toString());

const unaryAppend = async (
  client: Client,
  credentials: Credentials,
  { stream, after, batch }: AppendRequest,
  ms: number,
): Promise<Stored> => {
  const events = batch.map(({ id, type, data, metadata }) =>
    jsonEvent({ id, type, data: parsed(data), metadata: parsed(metadata) }),
  );
  const { nextExpectedRevision, position } = await client.appendToStream(stream, events, {
    expectedRevision: after < 0 ? NO_STREAM : BigInt(after),
    // Without credentials the call would use the client's shared batch path.
    credentials,
    requiresLeader: true,
    deadline: Math.ceil(ms),
  });
  return { last: Number(nextExpectedRevision), position };
};

/** Makes the call for one try, which may take `ms` milliseconds. */
export function createAppendCall(credentials: Credentials) {
  const streams = new WeakMap<Client, ReturnType<typeof createBatchStream>>();
  const withoutBatches = new WeakSet<Client>();

  const streamOf = (client: Client) => {
    const known = streams.get(client);
    if (known !== undefined) return known;
    const made = createBatchStream(client, credentials);
    streams.set(client, made);
    return made;
  };

  return (client: Client, request: AppendRequest, ms: number): Call<Stored> => {
    if (bytesOf(request.batch) > APPEND_BYTES_MAX) {
      return { response: Promise.reject(tooLarge(APPEND_BYTES_MAX)) };
    }
    const unary = (): Promise<Stored> => unaryAppend(client, credentials, request, ms);
    if (withoutBatches.has(client)) return { response: unary() };
    const { response, cancel } = streamOf(client)(request);
    const onOldServer = (error: { code?: number }): Promise<Stored> => {
      if (error.code !== UNIMPLEMENTED) throw error;
      withoutBatches.add(client);
      return unary();
    };
    return { response: response.catch(onOldServer), ...(cancel && { cancel }) };
  };
}
