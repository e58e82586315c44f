/**
 * Moves the write-ahead log of the read models into their file, in the thread of searches. SQLite would do
 * it inside a commit on the event loop, where every request would wait for the disk.
 */
import type { StatementSync } from 'node:sqlite';

/** 8 MB: a longer log keeps a batch waiting for longer, of a shorter one more pages are moved twice. */
const DUE_AT_PAGES = 2_000;

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

export type Checkpoints = ReturnType<typeof createCheckpoints>;
