/**
 * Moves the write-ahead log of the read models into their file, in the thread of searches. SQLite would do
 * it inside a commit on the event loop, where every request would wait for the disk.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import type { Scan } from '../../runtime/scan.ts';

/** Module URL to pass to a scan thread. */
export const CHECKPOINT_SCAN = import.meta.url;

/** 8 MB: a longer log keeps a batch waiting for longer, of a shorter one more pages are moved twice. */
const DUE_AT_PAGES = 2_000;

/** One checkpoint of the file. Throws SQLite's errors; the next checkpoint moves what this one left. */
export const scan: Scan<{ file: string }, never, void> = async ({ file }) => {
  // A file that is gone is not made again.
  using db = new DatabaseSync(`${pathToFileURL(file).href}?mode=rw`, { timeout: 0 });
  db.exec('PRAGMA synchronous = NORMAL; PRAGMA wal_checkpoint(PASSIVE)');
};

/** The checkpoints of the served file; `move` orders one. */
export const createCheckpoints = (move: () => Promise<void>) => {
  let underWay: Promise<void> | undefined;
  return {
    /** A batch waits for it: only a log that was moved to its end is written from its start again. */
    underWay: (): Promise<void> | undefined => underWay,
    /** Begins a checkpoint where one is due. */
    afterCommit({ walPages }: { walPages: StatementSync }): void {
      const { log, checkpointed } = walPages.get() as { log: number; checkpointed: number };
      if (underWay !== undefined || log - checkpointed < DUE_AT_PAGES) return;
      underWay = move()
        // Without a thread, or on a full disk, the log grows until SQLite moves it inside a commit.
        .catch(() => undefined)
        .finally(() => {
          underWay = undefined;
        });
    },
  };
};

/** See createCheckpoints. */
export type Checkpoints = ReturnType<typeof createCheckpoints>;
