/** `npm test` takes a share of what `npm run test:long` does as a whole. */
import { test } from '@jest/globals';

const isLong = process.env.TEST_LONG === '1';

/** All of a table in the long run, else its first `size` rows: put the telling ones first. */
export const shareOf = <T>(all: readonly T[], size: number): readonly T[] =>
  isLong ? all : all.slice(0, size);

/** How often: `whole` times in the long run, else `share` times. */
export const timesOf = (whole: number, share: number): number => (isLong ? whole : share);

const notNow = Object.assign(() => {}, { each: () => () => {} });

/** A test that the long run alone takes, in a file of which `npm test` takes the rest. */
export const testOfLongRun: Pick<typeof test, 'each'> &
  ((...given: Parameters<typeof test>) => void) = isLong ? test : notNow;
