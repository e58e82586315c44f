import { Worker } from 'node:worker_threads';
import { StoreFileUnusable, StoreUnavailable } from '../errors.ts';
import { Failed, type Failure, type Reply, type WorkerOptions } from './messages.ts';
import type { Handlers } from './worker.ts';

export type Thread = {
  /** The last position of the log, 0 when empty. */
  openedAt: number;
  call<N extends keyof Handlers>(
    name: N,
    ...args: Parameters<Handlers[N]>
  ): Promise<ReturnType<Handlers[N]>>;
};

export function rethrow(error: unknown): never {
  if (!(error instanceof Failed)) throw error;
  const { message, failure } = error;
  throw failure.kind === 'unusable'
    ? new StoreFileUnusable(message)
    : new StoreUnavailable(message);
}

type PendingCall = { resolve: (value: never) => void; reject: (error: Failed) => void };

/** A group's leftovers are garbage at once: more than 16 MB in all spares nothing (ADR-0112). */
const MEMORY = { maxYoungGenerationSizeMb: 24 };

/** Rejects with Failed, as each call; `onFatal` is called at most once, later. */
export async function startThread(
  workerData: WorkerOptions,
  onFatal: (failure: Failure) => void,
): Promise<Thread> {
  // Flags of this process, such as --input-type, are about its main module.
  const options = { workerData, execArgv: [], resourceLimits: MEMORY };
  const worker = new Worker(new URL('./worker.ts', import.meta.url), options);
  const calls = new Map<number, PendingCall>();
  let callsMade = 0;
  let gone: Failed | undefined;
  let reportFatal: ((failure: Failure) => void) | undefined;

  const promise = (call: number): Promise<never> =>
    new Promise((resolve, reject) => calls.set(call, { resolve, reject }));

  function onReply(reply: Reply | object): void {
    // Under `node --watch` Node posts the names of files that the thread has read.
    if (!('call' in reply)) return;
    const call = calls.get(reply.call);
    calls.delete(reply.call);
    if (calls.size === 0) worker.unref();
    if ('value' in reply) {
      call?.resolve(reply.value as never);
    } else {
      if (reply.failure.kind === 'fatal') fatal(reply.failure);
      call?.reject(new Failed(reply.failure));
    }
  }

  function fatal(failure: Failure): void {
    reportFatal?.(failure);
    reportFatal = undefined;
  }

  function ended(message: string): void {
    gone ??= new Failed({ kind: 'fatal', message, unknown: true });
    fatal(gone.failure);
    for (const call of calls.values()) call.reject(gone);
    calls.clear();
  }

  worker.on('message', onReply);
  worker.on('error', (error) => ended(`the event store's thread failed: ${String(error)}`));
  worker.on('exit', () => ended("the event store's thread ended"));

  const openedAt = await promise(0);
  reportFatal = onFatal;
  return {
    openedAt,
    call(name, ...args) {
      if (gone !== undefined) return Promise.reject(gone);
      callsMade += 1;
      worker.ref();
      worker.postMessage({ call: callsMade, name, args });
      if (name === 'close') reportFatal = undefined;
      return promise(callsMade);
    },
  };
}
