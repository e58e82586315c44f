/**
 * Chance that can be had again: `npm test` draws the same every time; the long run draws anew and prints its
 * seed, and `TEST_SEED` repeats it.
 */

export type Random = {
  /** A whole number from `min` to `max`. */
  between(min: number, max: number): number;
  /** True this often, from 0 to 1. */
  chance(share: number): boolean;
};

export const SEED = Number(process.env.TEST_SEED ?? 1);

/** Numbers that follow from the seed alone (mulberry32). */
export const randomOf = (seed = SEED): Random => {
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (share) => next() < share,
  };
};
