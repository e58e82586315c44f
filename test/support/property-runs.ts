/**
 * How often properties are tried: a third of the runs in `npm test`, and a tenth of them under Stryker
 * (`npm run test:mutation`), which runs the tests once for every mutant.
 */
import { timesOf } from './long-run-share.ts';

export const UNDER_STRYKER = process.env.STRYKER_MUTATOR_WORKER !== undefined;

/** How often a property is tried of which `runs` are due. */
export const propertyRuns = (runs: number): number =>
  Math.ceil(UNDER_STRYKER ? runs / 10 : timesOf(runs, runs / 3));
