/**
 * Moves the write-ahead log of the read models into their file, in a thread (wal-thread.ts) over a
 * connection of its own. SQLite would do it inside a commit on the event loop, which then waits for the
 * disk.
 *
 * The thread opens the file by its path for each round. Where the file is replaced meanwhile, it could
 * open one file and the log of the other: so who replaces the file holds the gate, and waits for a round
 * under way.
 */
import type { StatementSync } from 'node:sqlite';
import { Worker } from 'node:worker_threads';

/** 16 MB: pages that are written again and again are moved once. */
const MOVED_AT_PAGES = 4_000;
/** 64 MB: a log that the thread could not move is moved inside a commit. */
export const MOVED_IN_COMMIT_AT_PAGES = 16_000;
/** The thread opens one file, and makes no more than a message at a time. */
const MEMORY = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 1 };

/** States of the gate, which both threads share. */
export const GATE = { free: 0, moving: 1, held: 2 } as const;

/** What the thread works with. */
export type WalThreadData = { file: string; gate: Int32Array };

/** The moves of one file's log. */
export type WalMoves = {
  /** Begins a move where one is due; to be called after a commit. */
  afterCommit(at: { walPages: StatementSync }): void;
  /** What a write waits for: only a log that was moved to its end is written from its start again. */
  rest(): Promise<void> | undefined;
  /** Runs a step that puts another file in the place of this one, while nothing is moved. */
  whileStill<T>(step: () => T): T;
  /** Ends the thread; nothing is moved afterwards. */
  close(): Promise<void>;
};

/** Makes the moves of a file; their thread starts when the first one is due. */
export const createWalMoves = (file: string, movedAtPages = MOVED_AT_PAGES): WalMoves => {
  const gate = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
  let worker: Worker | undefined;
  let moving = false;
  let rest: Promise<void> | undefined;
  let roundOver = (): void => undefined;

  const start = (): Worker => {
    const started = new Worker(new URL('./wal-thread.ts', import.meta.url), {
      workerData: { file, gate } satisfies WalThreadData,
      execArgv: [],
      resourceLimits: MEMORY,
    });
    started.on('message', () => roundOver());
    started.on('error', () => undefined);
    started.on('exit', () => {
      worker = undefined;
      // One that died in the middle of a round would hold whoever waits at the gate for ever.
      Atomics.compareExchange(gate, 0, GATE.moving, GATE.free);
      roundOver();
    });
    started.unref();
    return started;
  };

  const round = (): Promise<void> =>
    new Promise((resolve) => {
      roundOver = resolve;
      worker ??= start();
      worker.postMessage(null);
    });

  const move = async (): Promise<void> => {
    moving = true;
    try {
      await round();
      // Moves what was written during the first round; nothing is written meanwhile.
      rest = round();
      await rest;
    } finally {
      rest = undefined;
      moving = false;
    }
  };

  /** Waits for a round under way: milliseconds, as it would take inside a commit. */
  const hold = (): void => {
    while (Atomics.compareExchange(gate, 0, GATE.free, GATE.held) === GATE.moving)
      Atomics.wait(gate, 0, GATE.moving);
  };

  return {
    afterCommit: ({ walPages }) => {
      if (moving) return;
      const pages = walPages.get() as { log: number; checkpointed: number };
      // No thread can be had: the log is moved inside a commit.
      if (pages.log - pages.checkpointed >= movedAtPages) move().catch(() => undefined);
    },
    rest: () => rest,
    whileStill: (step) => {
      hold();
      try {
        return step();
      } finally {
        Atomics.store(gate, 0, GATE.free);
      }
    },
    close: async () => {
      hold();
      await worker?.terminate();
    },
  };
};
