/** Before each test file: properties draw by the seed of the run. */
import fc from 'fast-check';
import { UNDER_STRYKER } from '../support/property-runs.ts';
import { SEED } from '../support/random.ts';

// Once for every mutant there is no time to search for the smallest example that fails.
fc.configureGlobal({ seed: SEED, endOnFailure: UNDER_STRYKER });
