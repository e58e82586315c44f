/**
 * What every event store promises (shared/event-store/port.ts), asked of one driver: the cases are
 * one and the same for all of them, by theme in the `.cases.ts` files beside this one.
 */
import { afterAll } from '@jest/globals';
import { describeDriver } from '../support/describe-driver.ts';
import { appendingCases } from './appending.cases.ts';
import { closingCases } from './closing.cases.ts';
import type { EventStoreDriver } from './opened.ts';
import { readingCases } from './reading.cases.ts';
import { removingCases } from './removing.cases.ts';
import { storedFormCases } from './stored-forms.cases.ts';
import { subscribingCases } from './subscribing.cases.ts';
import { wholeLogCases } from './whole-log.cases.ts';

export const describeEventStore = (driver: EventStoreDriver): void =>
  describeDriver('event store', driver, () => {
    afterAll(async () => driver.end?.());
    appendingCases(driver);
    readingCases(driver);
    removingCases(driver);
    subscribingCases(driver);
    closingCases(driver);
    storedFormCases(driver);
    wholeLogCases(driver);
  });
