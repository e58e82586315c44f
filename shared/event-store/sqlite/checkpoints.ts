/**
 * When the write-ahead log is moved into the file. A thread of its own (checkpoint-thread.ts) moves the
 * bulk of it while appends go on. The rest is moved by the thread that appends, between two groups: only
 * a log that was moved to its end is written from its start again.
 *
 * SQLite's own checkpoint would run inside a commit and hide a failed fsync, after which the log, the
 * only copy of the events, would be written over.
 */
import { once } from 'node:events';
import type { DatabaseSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';
import { messageOf, type Statements } from './database.ts';
import { Failed, type Failure } from './messages.ts';

// 8 MB: long enough that hot pages are moved once, short enough for a quick start after a crash.
const CHECKPOINT_PAGES = 2000;
// Moved between two groups. A round in the other thread leaves what was appended during it.
const REST_PAGES = 200;
const BULK_ROUNDS_MAX = 3;

// The thread gets one message at a time, and allocates hardly anything.
const MEMORY = { maxYoungGenerationSizeMb: 1 };

const MOVE = 'PRAGMA wal_checkpoint(PASSIVE)';

/** The open file, and what it has to do with the store's life. */
export type CheckpointsOptions = {
  file: string;
  database: DatabaseSync;
  statements: Statements;
  isStopped(): boolean;
  /** Gets what was thrown where the log could not be moved. */
  onError(error: unknown): void;
};

/** The checkpoints of the file. Their thread is started when the first one is due. */
export function checkpoints(options: CheckpointsOptions) {
  const { file, database, statements, isStopped, onError } = options;
  let worker: Worker | undefined;
  let underWay: Promise<void> | undefined;
  let closing = false;

  function pagesLeft(): number {
    const pages = statements.walPages.get() as { log: number; checkpointed: number };
    return pages.log - pages.checkpointed;
  }

  function startWorker(): Worker {
    const workerOptions = { workerData: file, execArgv: [], resourceLimits: MEMORY };
    const started = new Worker(new URL('./checkpoint-thread.ts', import.meta.url), workerOptions);
    started.unref();
    return started;
  }

  /** A round of the other thread; null where it went well. Never throws. */
  async function round(): Promise<Failure | null> {
    try {
      worker ??= startWorker();
      worker.postMessage(null);
      const [failure] = (await once(worker, 'message')) as [Failure | null];
      return failure;
    } catch (error) {
      // It could not be started, as without a file descriptor. The next checkpoint tries again.
      worker = undefined;
      return { kind: 'unusable', message: messageOf(error), unknown: false };
    }
  }

  /** Throws Failed for a failed fsync. What else goes wrong, the last step meets as well. */
  async function moveBulk(): Promise<void> {
    for (let rounds = 0; rounds < BULK_ROUNDS_MAX; rounds += 1) {
      if (closing || pagesLeft() <= REST_PAGES) return;
      const failure = await round();
      if (failure?.kind === 'fatal') throw new Failed(failure);
      if (failure !== null) return;
    }
  }

  async function move(): Promise<void> {
    await moveBulk();
    // After a failed fsync of an append nothing is moved: what the log holds is not known.
    if (!isStopped()) database.exec(MOVE);
  }

  return {
    /** Begins a checkpoint where one is due; to be called after each write. */
    afterWrite(): void {
      if (underWay !== undefined || pagesLeft() < CHECKPOINT_PAGES) return;
      underWay = move()
        .catch(onError)
        .finally(() => {
          underWay = undefined;
        });
    },
    /** Moves the log at once: a full disk may need no more than its pages to be written over. */
    moveNow: (): void => database.exec(MOVE),
    /** Ends the thread, after the round under way. */
    async close(): Promise<void> {
      closing = true;
      await underWay;
      await worker?.terminate();
    },
  };
}
