/**
 * Each deliberate bug of test/support/seeded-bug-list.ts, put into a copy of the project, makes the
 * tests named with it fail.
 */
import { expect, test } from '@jest/globals';
import { SEEDED_BUGS, UNNOTICED } from '../support/seeded-bug-list.ts';
import {
  copyOfProject,
  isNoticed,
  markedPlaces,
  missingNames,
  passes,
  removeCopy,
  type SeededBug,
} from '../support/seeded-bugs.ts';

const TIME_MS_MAX = 3 * 60 * 60_000;

test(
  'every seeded bug is noticed',
  () => {
    const copy = copyOfProject();
    const places = new Map(markedPlaces());
    const isMissed = (bug: SeededBug): boolean => {
      const place = places.get(bug.at);
      return place === undefined || !isNoticed(copy, bug, place);
    };
    try {
      expect(missingNames(copy, SEEDED_BUGS)).toEqual([]);
      expect(passes(copy, [...new Set(SEEDED_BUGS.map(({ test }) => test))])).toBe(true);
      const missed = SEEDED_BUGS.filter(isMissed).map(({ name }) => name);
      const found = SEEDED_BUGS.length - missed.length;
      process.stderr.write(
        `seeded bugs: ${found} of ${SEEDED_BUGS.length} found, ${UNNOTICED.length} listed as unnoticeable\n`,
      );
      expect(missed).toEqual([]);
    } finally {
      removeCopy(copy);
    }
  },
  TIME_MS_MAX,
);
