/** Finds where the served read models say other money than those that replace them (ADR-0123). */
import { setImmediate as turn } from 'node:timers/promises';
import type { z } from 'zod';
import type { DocumentRow } from '../shared/read-models/document-row.ts';
import { documentPages } from '../shared/read-models/pages.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { fewAtOnce } from '../shared/runtime/scheduling.ts';
import { money, type RebuildState } from './contract.ts';

const NAMED_MAX = 100;
const PAGE = 250;

/** `inLog` is null where the log has no such payment. */
export type MoneyDifferences = NonNullable<RebuildState['result']>['money'];

/** What a document says of money; sums in minor units. */
const moneyOf = ({ merchantId, body }: DocumentRow): z.infer<typeof money> => {
  const response = { ...JSON.parse(body), merchantId };
  const fields = Object.keys(money.shape).map((field) => [field, response[field]]);
  return Object.fromEntries(fields);
};

export const moneyDifferences = async (
  old: Pick<ReadModels, 'idsAfter' | 'inspect'>,
  next: Pick<ReadModels, 'inspect'>,
): Promise<MoneyDifferences> => {
  const found: MoneyDifferences = { count: 0, named: [] };
  for await (const ids of documentPages(old, PAGE)) {
    const compared = await fewAtOnce(ids, async (paymentId): Promise<MoneyDifferences['named']> => {
      // In one process no read waits for anything: the event loop would never get its turn.
      await turn();
      const { row, whole, parked } = await old.inspect(paymentId);
      // Without its check a document proves nothing; one that was parked is known to be behind.
      if (row === undefined || !whole || parked) return [];
      const served = moneyOf(row);
      const { row: made } = await next.inspect(paymentId);
      const inLog = made === undefined ? null : moneyOf(made);
      const isSame = JSON.stringify(served) === JSON.stringify(inLog);
      return isSame ? [] : [{ paymentId, served, inLog }];
    });
    const differences = compared.flat();
    found.count += differences.length;
    found.named.push(...differences.slice(0, NAMED_MAX - found.named.length));
  }
  return found;
};
