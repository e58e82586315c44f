/**
 * What every provider promises (providers/port.ts), asked of one driver: the cases are
 * one and the same for all of them, by theme in the `.cases.ts` files beside this one.
 */
import { describeDriver } from '../support/describe-driver.ts';
import { cardCases } from './cards.cases.ts';
import { fencingCases } from './fencing.cases.ts';
import { ledgerCases } from './ledger.cases.ts';
import { moneyRuleCases } from './money-rules.cases.ts';
import { onlySimulated, type ProviderDriver } from './opened.ts';
import { operationIdCases } from './operation-ids.cases.ts';
import { tokenCases } from './tokens.cases.ts';

export const describeProvider = (driver: ProviderDriver): void =>
  describeDriver('provider', driver, () => {
    operationIdCases(driver);
    fencingCases(driver);
    ledgerCases(driver);
    tokenCases(driver);
    onlySimulated(driver, () => {
      cardCases(driver);
      moneyRuleCases(driver);
    });
  });
