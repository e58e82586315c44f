/**
 * Each deliberate bug of test/support/seeded-bug-list.ts, put into a copy of the project, makes the
 * tests named with it fail.
 */
import { availableParallelism } from 'node:os';
import { expect, test } from '@jest/globals';
import { SEEDED_BUGS, UNNOTICED } from '../support/seeded-bug-list.ts';
import {
  copyOfProject,
  failingUntouched,
  isNoticed,
  markedPlaces,
  missedIn,
  missingNames,
  removeCopy,
  type SeededBug,
} from '../support/seeded-bugs.ts';

const TIME_MS_MAX = 3 * 60 * 60_000;

const isDrivable = ({ needs }: SeededBug): boolean => needs === undefined || !!process.env[needs];

test(
  'every seeded bug is noticed',
  async () => {
    const copies = Array.from({ length: availableParallelism() }, copyOfProject);
    const places = new Map(markedPlaces());
    const bugs = SEEDED_BUGS.filter(isDrivable);
    const files = [...new Set(bugs.map(({ test }) => test))];
    try {
      expect(missingNames(copies[0] ?? '', SEEDED_BUGS)).toEqual([]);
      expect(await failingUntouched(copies, files)).toEqual([]);
      const missed = await missedIn(
        copies,
        bugs,
        ({ name }) => name,
        async (copy, bug) => {
          const place = places.get(bug.at);
          return place !== undefined && isNoticed(copy, bug, place);
        },
      );
      const found = bugs.length - missed.length;
      const undriven = SEEDED_BUGS.length - bugs.length;
      process.stderr.write(
        `seeded bugs: ${found} of ${SEEDED_BUGS.length} found, ${undriven} not driven for want of an engine, ${UNNOTICED.length} listed as unnoticeable\n`,
      );
      expect(missed.map(({ name }) => name)).toEqual([]);
    } finally {
      copies.forEach(removeCopy);
    }
  },
  TIME_MS_MAX,
);
