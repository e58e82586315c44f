/** Chance that can be had again: the seed is printed, and `TEST_SEED` sets it. */

export type Random = {
  seed: number;
  /** A whole number from `min` to `max`. */
  between(min: number, max: number): number;
  /** True this often, from 0 to 1. */
  chance(share: number): boolean;
};

/** The seed of this run: `TEST_SEED`, else a new one. */
export const newSeed = (): number => Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);

/** Numbers that follow from the seed alone (mulberry32). */
export const randomOf = (seed: number): Random => {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    seed,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (share) => next() < share,
  };
};
