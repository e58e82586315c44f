/**
 * How often properties are tried: a third of the runs in `npm test`. Under Stryker
 * (`npm run test:mutation`), which runs the tests once for every mutant, a tenth of them, and no search
 * for the smallest example that fails.
 */
import fc from 'fast-check';
import { timesOf } from './long-run-share.ts';

const UNDER_STRYKER = process.env.STRYKER_MUTATOR_WORKER !== undefined;
if (UNDER_STRYKER) fc.configureGlobal({ endOnFailure: true });

/** How often a property is tried of which `runs` are due. */
export const propertyRuns = (runs: number): number =>
  Math.ceil(UNDER_STRYKER ? runs / 10 : timesOf(runs, runs / 3));
