/**
 * Property tests under Stryker (`npm run test:mutation`), which runs the tests once for every
 * mutant: a tenth of the runs, and no search for the smallest example that fails.
 */
import fc from 'fast-check';

const UNDER_STRYKER = process.env.STRYKER_MUTATOR_WORKER !== undefined;
if (UNDER_STRYKER) fc.configureGlobal({ endOnFailure: true });

/** How often a property is tried. */
export const propertyRuns = (runs: number): number => (UNDER_STRYKER ? Math.ceil(runs / 10) : runs);
