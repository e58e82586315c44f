/** `npm test` takes a share of what `npm run test:long` does as a whole. */

const isLong = process.env.TEST_LONG === '1';

/** All of a table in the long run, else its first `size` rows: put the telling ones first. */
export const shareOf = <T>(all: readonly T[], size: number): readonly T[] =>
  isLong ? all : all.slice(0, size);

/** How often: `whole` times in the long run, else `share` times. */
export const timesOf = (whole: number, share: number): number => (isLong ? whole : share);
