/**
 * The turn to write to a file that several threads fill at once. SQLite lets one write at a time too, but who
 * waits for its lock sleeps in steps of up to 100 ms; who waits for the turn is woken when it is free.
 */

/** What threads share of a turn: plain data, which is posted to each of them. */
export type WriteTurn = Int32Array<SharedArrayBuffer>;

/** A turn that nobody has. */
export const createWriteTurn = (): WriteTurn => new Int32Array(new SharedArrayBuffer(4));

/**
 * A thread that was ended within its turn never gives it back. So nobody waits for longer, and SQLite's lock
 * alone keeps writers apart then.
 */
const WAIT_MS_MAX = 1_000;
const FREE = 0;
const TAKEN = 1;

const take = (turn: WriteTurn): boolean => {
  const until = performance.now() + WAIT_MS_MAX;
  while (Atomics.compareExchange(turn, 0, FREE, TAKEN) !== FREE) {
    const left = until - performance.now();
    if (left <= 0) return false;
    Atomics.wait(turn, 0, TAKEN, left);
  }
  return true;
};

/** Runs a step of this thread when no other one is within its own. */
export const inWriteTurn = <T>(turn: WriteTurn | undefined, step: () => T): T => {
  if (turn === undefined) return step();
  const isOwn = take(turn);
  try {
    return step();
  } finally {
    if (isOwn) {
      // seeded bug: turn-given-back
      Atomics.store(turn, 0, FREE);
      Atomics.notify(turn, 0, 1);
    }
  }
};
