/** Many appends at once over one BatchAppend stream (ADR-0007); `createSender` tries again. */
import { randomUUID } from 'node:crypto';
import streamsGrpc from '@eventstore/db-client/generated/streams_grpc_pb.js';
import {
  type AppendRequest,
  type AppendResponse,
  appendRequestOf,
  appendResponseOf,
  type Stored,
} from './batch-messages.ts';
import type { Call } from './call-outcome.ts';
import {
  type CallArguments,
  type Credentials,
  type GrpcError,
  openCall,
  type StoreClient,
  type Stubs,
} from './client.ts';

const { StreamsService } = streamsGrpc;

const asIs = (bytes: Buffer): Buffer => bytes;

const startAppends = (stubs: Stubs, ...args: CallArguments) =>
  stubs.makeBidiStreamRequest(StreamsService.batchAppend.path, asIs, appendResponseOf, ...args);

/** An unanswered append is unknown unless it alone got "not the leader", or the stream was rejected at once. */
function errorOfEnd(error: GrpcError | undefined, hadResponse: boolean, isAlone: boolean): Error {
  if (error?.metadata?.get('exception')[0] === 'not-leader') {
    const type = isAlone ? 'not-leader' : 'stream-broken';
    return Object.assign(new Error('the server is not the leader'), { type });
  }
  if (error !== undefined && !hadResponse) return error;
  return new Error(`the stream of appends ended: ${error?.code ?? 'by the server'}`);
}

/** Calls `left` when the next append needs another stream. */
function follow(duplex: ReturnType<typeof startAppends>, left: () => void) {
  const waiting = new Map<string, PromiseWithResolvers<Stored>>();
  let hadResponse = false;
  let isSuspect = false;
  let isOver = false;

  const end = (error?: GrpcError): void => {
    if (isOver) return;
    isOver = true;
    left();
    const reason = errorOfEnd(error, hadResponse, waiting.size === 1 && !isSuspect);
    for (const { reject } of waiting.values()) reject(reason);
    waiting.clear();
    duplex.cancel();
    duplex.destroy();
  };
  const endWhenLeft = (): void => {
    if (isSuspect && waiting.size === 0) end();
  };
  duplex.on('data', ({ id, outcome }: AppendResponse) => {
    const append = waiting.get(id);
    if (append === undefined) return;
    waiting.delete(id);
    hadResponse = true;
    if (outcome instanceof Error) append.reject(outcome);
    else append.resolve(outcome);
    endWhenLeft();
  });
  // An 'error' event without a listener would end the process, so it stays.
  duplex.on('error', end);
  duplex.on('end', () => end());
  duplex.on('close', () => end());

  return {
    send(id: string, request: AppendRequest): Promise<Stored> {
      if (isOver) throw Object.assign(new Error('the stream was not open'), { type: 'not-sent' });
      duplex.write(appendRequestOf(id, request));
      const append = Promise.withResolvers<Stored>();
      waiting.set(id, append);
      return append.promise;
    },
    giveUp(id: string): void {
      isSuspect = true;
      left();
      waiting.delete(id);
      endWhenLeft();
    },
  };
}

type BatchStream = ReturnType<typeof follow>;

export function createBatchStream(client: StoreClient, credentials: Credentials) {
  let current: Promise<BatchStream> | undefined;

  function open(): Promise<BatchStream> {
    const left = (): void => {
      if (current === opening) current = undefined;
    };
    const { promise, resolve } = Promise.withResolvers<BatchStream>();
    const opening = openCall(client, { credentials, requiresLeader: true }, (...args) => {
      const duplex = startAppends(...args);
      resolve(follow(duplex, left));
      return duplex;
    }).then(() => promise);
    opening.catch(left);
    return opening;
  }

  return (request: AppendRequest): Call<Stored> => {
    const id = randomUUID();
    let stream: BatchStream | undefined;
    let isGivenUp = false;
    const send = async (): Promise<Stored> => {
      current ??= open();
      stream = await current;
      if (isGivenUp) throw new Error('given up before it was sent');
      return stream.send(id, request);
    };
    return {
      response: send(),
      cancel: () => {
        isGivenUp = true;
        stream?.giveUp(id);
      },
    };
  };
}
