import { setImmediate as immediate } from 'node:timers/promises';
import { startThread } from '../../runtime/jobs.ts';
import type { Logger } from '../../runtime/log.ts';
import { GENESIS_HASH } from '../chain.ts';
import { allReadable, type EncodedEvent, encode } from '../codec.ts';
import {
  type AppendMetrics,
  AppendOutcomeUnknown,
  countFailure,
  RevisionConflict,
  StoreFileUnusable,
  StoreUnavailable,
} from '../errors.ts';
import { decodeForm } from '../fold-stream.ts';
import type { EventStore, Expected, FileFault, RecordedEvent } from '../port.ts';
import { type AppendJob, type AppendOutcome, Failed, type WriterOptions } from './database.ts';
import type { LiveTail } from './log-reader.ts';
import type { Writer } from './worker.ts';

/** A group's leftovers are garbage at once: more than 16 MB in all spares nothing (ADR-0112). */
const MEMORY = { maxYoungGenerationSizeMb: 24 };

const portError = ({ kind, message, isDamaged }: Failed): StoreUnavailable =>
  kind === 'unusable' || kind === 'damaged'
    ? new StoreFileUnusable(message, isDamaged)
    : new StoreUnavailable(message);

/** Of an error that came from the thread, or of the thread's own end. */
const failedFrom = ({ message, ...fields }: Error): Failed => {
  const { kind = 'fatal', unknown = true, isDamaged } = fields as Partial<Failed>;
  return new Failed(kind, message, unknown, isDamaged);
};

/** `onFatal` is called at most once, after the start, `onDamage` each time. Throws StoreFileUnusable. */
export async function startWriter(
  workerData: WriterOptions,
  onFatal: (failed: Failed) => void,
  onDamage: (message: string) => void,
) {
  let reportFatal: ((failed: Failed) => void) | undefined;
  const note = (error: Error): Failed => {
    const failed = failedFrom(error);
    if (failed.kind === 'damaged') onDamage(failed.message);
    if (failed.kind === 'fatal') {
      reportFatal?.(failed);
      reportFatal = undefined;
    }
    return failed;
  };
  const thread = startThread<Writer>(new URL('./worker.ts', import.meta.url), {
    name: "the event store's thread",
    workerData,
    memory: MEMORY,
    onEnd: note,
  });

  const callRaw = <N extends keyof Writer>(job: N, ...args: Parameters<Writer[N]>) =>
    thread.call(job, ...args).catch((error: Error) => {
      throw note(error);
    });
  const call = <N extends keyof Writer>(job: N, ...args: Parameters<Writer[N]>) =>
    callRaw(job, ...args).catch((failed: Failed) => {
      throw portError(failed);
    });

  const close = async (): Promise<void> => {
    reportFatal = undefined;
    // A file that was not closed cleanly loses nothing, as after a crash.
    await call('close').catch(() => undefined);
    await thread.end();
  };

  const openedAt = await call('end').catch(async (error: unknown) => {
    await close();
    throw error;
  });
  reportFatal = onFatal;
  return { openedAt, callRaw, call, close };
}

// The memory must not fill while a disk does not respond.
const WAITING_APPENDS_MAX = 10_000;

type Waiting = {
  stream: string;
  expected: Expected;
  encoded: EncodedEvent[];
  resolve: (events: RecordedEvent[]) => void;
  reject: (error: unknown) => void;
};

const jobOf = ({ stream, expected, encoded }: Waiting): AppendJob => {
  const { revision, hash } = expected === 'none' ? { revision: -1, hash: GENESIS_HASH } : expected;
  const rows: AppendJob[3] = encoded.map(({ recorded: { id, hash }, text }) => [id, hash, text]);
  return [stream, revision, hash, rows];
};

/** All appends of two turns, or since the last group, become one transaction with one fsync. */
export function groupCommit(
  { callRaw }: Awaited<ReturnType<typeof startWriter>>,
  tail: LiveTail,
  { logger, metrics }: { logger?: Pick<Logger, 'warn'>; metrics?: AppendMetrics },
) {
  let waiting: Waiting[] = [];
  let working: Promise<void> | undefined;
  let rejecting = false;
  let faults: readonly FileFault[] = [];
  let closed = false;

  /** No stream: the file as a whole. */
  function rejectFaulty(stream = ''): void {
    const fault = faults.find((one) => one.stream === stream || one.stream === '');
    if (fault !== undefined) throw new StoreFileUnusable(`nothing is appended: ${fault.reason}`);
  }

  async function work(): Promise<void> {
    for (let isAnnounced = true; waiting.length > 0 || !isAnnounced; isAnnounced = !isAnnounced) {
      await immediate().then(immediate);
      const group = waiting;
      waiting = [];
      if (group.length > 0) await commit(group);
      // Outcomes that follow their intents within two turns reach the projector in one batch with them.
      if (!isAnnounced) tail.announce();
    }
    working = undefined;
  }

  async function commit(group: Waiting[]): Promise<void> {
    const outcomes = await callRaw('append', group.map(jobOf)).catch((error: Failed) => error);
    if (outcomes instanceof Failed) return rejectGroup(group, outcomes);
    for (const [index, one] of group.entries()) resolveOne(one, outcomes[index] as AppendOutcome);
    if (!outcomes.some(Array.isArray)) return;
    metrics?.appendBatches.inc();
    noteTaken();
  }

  async function rejectGroup(group: Waiting[], failed: Failed): Promise<void> {
    const { kind, message, unknown } = failed;
    if (kind === 'damaged') {
      // One by one, so that it fails no other append than those that need the page.
      if (group.length > 1) for (const one of group) await commit([one]);
      else group[0]?.reject(portError(failed));
      return;
    }
    if (!rejecting && kind !== 'fatal')
      logger?.warn({}, `appends are rejected, event store: ${message}`);
    rejecting = true;
    for (const { reject } of group)
      reject(unknown ? new AppendOutcomeUnknown(message) : new StoreUnavailable(message));
  }

  function noteTaken(): void {
    if (rejecting)
      logger?.warn({}, 'appends are accepted again, event store: it can be written to');
    rejecting = false;
  }

  function resolveOne({ stream, encoded, resolve, reject }: Waiting, outcome: AppendOutcome): void {
    try {
      if (Array.isArray(outcome)) resolve(placed(encoded, outcome));
      else if ('repeated' in outcome) resolve(allReadable(outcome.repeated.map(decodeForm)));
      else reject(new RevisionConflict(`${stream} ${outcome.conflict}`));
    } catch (error) {
      reject(error);
    }
  }

  function placed(encoded: EncodedEvent[], [first, logHashes]: [number, string[]]) {
    return encoded.map(({ recorded }, index) => {
      const logHash = logHashes[index] as string;
      const event = Object.assign(recorded, { position: String(first + index), logHash });
      tail.push(event);
      return event;
    });
  }

  const add: EventStore['append'] = async (stream, expected, events) => {
    if (closed) throw new StoreUnavailable('the event store is closed');
    rejectFaulty(stream);
    if (waiting.length >= WAITING_APPENDS_MAX)
      throw new StoreUnavailable('too many appends wait for the disk');
    const encoded = encode(stream, expected, events);
    return new Promise((resolve, reject) => {
      waiting.push({ stream, expected, encoded, resolve, reject });
      working ??= work();
    });
  };

  const counted = countFailure(metrics);

  return {
    append: (...batch: Parameters<typeof add>) => add(...batch).catch(counted),
    noteFaults(found: readonly FileFault[]): void {
      faults = found;
    },
    async ping(): Promise<void> {
      rejectFaulty();
      if (!rejecting) return;
      await callRaw('probe').catch(({ message }: Failed) => {
        throw new StoreUnavailable(`not writable: ${message}`);
      });
      noteTaken();
    },
    async close(): Promise<void> {
      closed = true;
      await working;
    },
  };
}
