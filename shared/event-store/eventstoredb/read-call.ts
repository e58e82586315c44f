/** Reads on a client's stubs: the client would parse each event and copy it twice, and knows no filter. */
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import type { Call } from './call-outcome.ts';
import { type CallArguments, openCall, type StoreClient, type Stubs } from './client.ts';
import { type LogRead, logReadOf, type ReadResponse, readResponseOf } from './read-messages.ts';
import type { ServerEvent } from './records.ts';

const { path } = streamsGrpc.StreamsService.read;

const startRead = (stubs: Stubs, request: Buffer, ...args: CallArguments) =>
  stubs.makeServerStreamRequest(path, (bytes: Buffer) => bytes, readResponseOf, request, ...args);

export type ReadCall = ReturnType<typeof startRead>;

/** `listen` is called before anything can come. Rejects without a connection. */
export const openRead = (
  client: StoreClient,
  options: Parameters<typeof openCall>[1],
  request: Buffer,
  listen: (call: ReadCall) => void,
): Promise<ReadCall> =>
  openCall(client, options, (stubs, ...args) => {
    const call = startRead(stubs, request, ...args);
    listen(call);
    return call;
  });

/** `isCut`: the read was late, and more events follow these. */
export type LogPage = { events: ServerEvent[]; isCut: boolean };

/** What has come after `partAfterMs` is the page, so that large events cannot make a scan fail. */
export const readLog = (client: StoreClient, read: LogRead, partAfterMs: number): Call<LogPage> => {
  const { promise, resolve, reject } = Promise.withResolvers<LogPage>();
  const events: ServerEvent[] = [];
  let isLeft = false;
  let call: ReadCall | undefined;
  const leave = (): void => {
    isLeft = true;
    // In a later turn: a call that is cancelled as it starts or in its own listener may throw.
    setImmediate(() => call?.cancel());
  };
  const late = setTimeout(() => {
    if (events.length === 0) return;
    resolve({ events, isCut: true });
    leave();
  }, partAfterMs);
  openRead(client, { requiresLeader: true }, logReadOf(read), (opened) => {
    call = opened;
    call.on('data', (response: ReadResponse) => {
      if (!isLeft && 'streamId' in response) events.push(response);
    });
    // An 'error' event without a listener would end the process, so it stays.
    call.on('error', reject);
    call.on('end', () => resolve({ events, isCut: false }));
    call.on('close', () => reject(new Error('the read was closed before its end')));
    if (isLeft) leave();
  }).catch(reject);
  return { response: promise.finally(() => clearTimeout(late)), cancel: leave };
};
