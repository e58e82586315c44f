/**
 * The promises of shared/read-models/port.ts, asked of one driver: the cases are one and the same
 * for all of them, by theme in the `.cases.ts` files beside this one. P1 and P2 are the invariants
 * "read model = fold of the events" and "a document never goes back".
 */
import { describeDriver } from '../support/describe-driver.ts';
import type { ReadModelDriver } from '../support/read-model-drivers.ts';
import { acknowledgedCases } from './acknowledged.cases.ts';
import { checkpointCases } from './checkpoint.cases.ts';
import { damageCases } from './damage.cases.ts';
import { documentCases } from './documents.cases.ts';
import { generationCases } from './generations.cases.ts';
import { leaseCases } from './lease.cases.ts';
import { parkingCases } from './parking.cases.ts';
import { searchCases } from './searching.cases.ts';
import { unresolvedCases } from './unresolved.cases.ts';
import { waitingCases } from './waiting.cases.ts';

export const describeReadModels = (driver: ReadModelDriver): void =>
  describeDriver('read models', driver, () => {
    documentCases(driver);
    damageCases(driver);
    searchCases(driver);
    checkpointCases(driver);
    acknowledgedCases(driver);
    parkingCases(driver);
    waitingCases(driver);
    leaseCases(driver);
    generationCases(driver);
    unresolvedCases(driver);
  });
