/** Finds where the served read models say other money than those that replace them (ADR-0123). */
import { setImmediate as turn } from 'node:timers/promises';
import type { PaymentResponse } from '../shared/payment/payment-response.ts';
import type { DocumentRow } from '../shared/read-models/document-row.ts';
import { documentPages } from '../shared/read-models/pages.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { fewAtOnce } from '../shared/runtime/scheduling.ts';

const NAMED_MAX = 100;
const PAGE = 250;

/** What a document says of money; sums in minor units. */
const FIELDS = [
  'currency',
  'status',
  'amount',
  'authorizedAmount',
  'capturedAmount',
  'refundedAmount',
  'refundableAmount',
] as const;
type Money = Pick<DocumentRow, 'merchantId'> & Pick<PaymentResponse, (typeof FIELDS)[number]>;

/** `inLog` is null where the log has no such payment. */
type MoneyDifference = { paymentId: string; served: Money; inLog: Money | null };

export type MoneyDifferences = { count: number; named: MoneyDifference[] };

const moneyOf = ({ merchantId, body }: DocumentRow): Money => {
  const response: PaymentResponse = JSON.parse(body);
  const fields = FIELDS.map((field) => [field, response[field]]);
  return { merchantId, ...Object.fromEntries(fields) };
};

export const moneyDifferences = async (
  old: Pick<ReadModels, 'idsAfter' | 'inspect'>,
  next: Pick<ReadModels, 'inspect'>,
): Promise<MoneyDifferences> => {
  const found: MoneyDifferences = { count: 0, named: [] };
  for await (const ids of documentPages(old, PAGE)) {
    const compared = await fewAtOnce(ids, async (paymentId): Promise<MoneyDifference[]> => {
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
