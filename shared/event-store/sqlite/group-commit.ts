import { Worker } from 'node:worker_threads';
import { GENESIS_HASH } from '../chain.ts';
import { allReadable, type EncodedEvent, encode } from '../codec.ts';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreFileUnusable,
  StoreUnavailable,
} from '../errors.ts';
import { decodeForm } from '../fold-stream.ts';
import type { EventStore, Expected, RecordedEvent } from '../port.ts';
import {
  type AppendJob,
  type AppendOutcome,
  Failed,
  type Failure,
  type Reply,
  type WorkerOptions,
} from './database.ts';
import type { LiveTail } from './log-reader.ts';
import type { Handlers } from './worker.ts';

/** A group's leftovers are garbage at once: more than 16 MB in all spares nothing (ADR-0112). */
const MEMORY = { maxYoungGenerationSizeMb: 24 };

const portError = ({ failure: { kind, isDamaged }, message }: Failed): StoreUnavailable =>
  kind === 'unusable' || kind === 'damaged'
    ? new StoreFileUnusable(message, isDamaged)
    : new StoreUnavailable(message);

type PendingCall = { resolve: (value: never) => void; reject: (error: Failed) => void };

/** `onFatal` is called at most once, after the start, `onDamage` each time. Throws StoreFileUnusable. */
export async function startThread(
  workerData: WorkerOptions,
  onFatal: (failure: Failure) => void = () => undefined,
  onDamage: (message: string) => void = () => undefined,
) {
  // Flags of this process, such as --input-type, are about its main module.
  const options = { workerData, execArgv: [], resourceLimits: MEMORY };
  const worker = new Worker(new URL('./worker.ts', import.meta.url), options);
  const calls = new Map<number, PendingCall>();
  let callsMade = 0;
  let gone: Failed | undefined;
  let reportFatal: ((failure: Failure) => void) | undefined;

  const promise = <T>(call: number) =>
    new Promise<T>((resolve, reject) => calls.set(call, { resolve, reject }));
  const throwPortError = (failed: Failed): never => {
    throw portError(failed);
  };

  function onReply(reply: Reply | object): void {
    // Under `node --watch` Node posts the names of files that the thread has read.
    if (!('call' in reply)) return;
    const call = calls.get(reply.call);
    calls.delete(reply.call);
    if (calls.size === 0) worker.unref();
    if ('value' in reply) call?.resolve(reply.value as never);
    else {
      if (reply.failure.kind === 'fatal') fatal(reply.failure);
      if (reply.failure.kind === 'damaged') onDamage(reply.failure.message);
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

  /** Rejects with Failed. */
  const callRaw = <N extends keyof Handlers>(
    name: N,
    ...args: Parameters<Handlers[N]>
  ): Promise<ReturnType<Handlers[N]>> => {
    if (gone !== undefined) return Promise.reject(gone);
    callsMade += 1;
    worker.ref();
    worker.postMessage({ call: callsMade, name, args });
    if (name === 'close') reportFatal = undefined;
    return promise(callsMade);
  };

  /** The last position of the log, 0 when empty. */
  const openedAt = await promise<number>(0).catch(throwPortError);
  reportFatal = onFatal;
  return {
    openedAt,
    callRaw,
    /** Throws the port's errors. */
    call: <N extends keyof Handlers>(name: N, ...args: Parameters<Handlers[N]>) =>
      callRaw(name, ...args).catch(throwPortError),
  };
}

export type Thread = Awaited<ReturnType<typeof startThread>>;

// The memory must not fill while a disk does not respond.
const WAITING_APPENDS_MAX = 10_000;

type Logger = { warn(details: object, message: string): void };

type Waiting = {
  stream: string;
  expected: Expected;
  encoded: EncodedEvent[];
  resolve: (events: RecordedEvent[]) => void;
  reject: (error: unknown) => void;
};

type Stored = Extract<AppendOutcome, { first: number }>;

const jobOf = ({ stream, expected, encoded }: Waiting): AppendJob => {
  const { revision, hash } = expected === 'none' ? { revision: -1, hash: GENESIS_HASH } : expected;
  const events = encoded.map(({ recorded: { id, hash }, text }) => ({ id, hash, text }));
  return { stream, revision, hash, events };
};

function appendError({ message, unknown }: Failure): Error {
  return unknown ? new AppendOutcomeUnknown(message) : new StoreUnavailable(message);
}

/** All appends of a turn, or since the last group, become one transaction with one fsync. */
export function groupCommit({ callRaw }: Thread, tail: LiveTail, logger: Logger | undefined) {
  let commits = 0;
  let waiting: Waiting[] = [];
  let working: Promise<void> | undefined;
  let rejecting = false;

  async function work(): Promise<void> {
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const group = waiting;
      waiting = [];
      await commit(group);
    }
    working = undefined;
  }

  async function commit(group: Waiting[]): Promise<void> {
    const outcomes = await callRaw('append', group.map(jobOf)).catch((error: Failed) => error);
    if (outcomes instanceof Failed) return rejectGroup(group, outcomes);
    for (const [index, one] of group.entries()) resolveOne(one, outcomes[index] as AppendOutcome);
    if (!outcomes.some((outcome) => 'first' in outcome)) return;
    commits += 1;
    tail.announce();
    noteTaken();
  }

  async function rejectGroup(group: Waiting[], failed: Failed): Promise<void> {
    const { failure } = failed;
    if (failure.kind === 'damaged') {
      // One by one, so that it fails no other append than those that need the page.
      if (group.length > 1) for (const one of group) await commit([one]);
      else group[0]?.reject(portError(failed));
      return;
    }
    if (!rejecting && failure.kind !== 'fatal')
      logger?.warn({}, `appends are rejected, event store: ${failure.message}`);
    rejecting = true;
    for (const { reject } of group) reject(appendError(failure));
  }

  function noteTaken(): void {
    if (rejecting)
      logger?.warn({}, 'appends are accepted again, event store: it can be written to');
    rejecting = false;
  }

  function resolveOne({ stream, encoded, resolve, reject }: Waiting, outcome: AppendOutcome): void {
    try {
      if ('first' in outcome) resolve(placed(encoded, outcome));
      else if ('repeated' in outcome) resolve(allReadable(outcome.repeated.map(decodeForm)));
      else reject(new RevisionConflict(`${stream} ${outcome.conflict}`));
    } catch (error) {
      reject(error);
    }
  }

  function placed(encoded: EncodedEvent[], { first, logHashes }: Stored): RecordedEvent[] {
    return encoded.map(({ recorded }, index) => {
      const logHash = logHashes[index] as string;
      const event = Object.assign(recorded, { position: String(first + index), logHash });
      tail.push(event);
      return event;
    });
  }

  const append: EventStore['append'] = async (stream, expected, events) => {
    if (waiting.length >= WAITING_APPENDS_MAX)
      throw new StoreUnavailable('too many appends wait for the disk');
    const encoded = encode(stream, expected, events);
    return new Promise((resolve, reject) => {
      waiting.push({ stream, expected, encoded, resolve, reject });
      working ??= work();
    });
  };

  return {
    commits: () => commits,
    append,
    async ping(): Promise<void> {
      if (!rejecting) return;
      await callRaw('probe').catch(({ failure }: Failed) => {
        throw new StoreUnavailable(`not writable: ${failure.message}`);
      });
      noteTaken();
    },
    done: (): Promise<void> => working ?? Promise.resolve(),
  };
}
