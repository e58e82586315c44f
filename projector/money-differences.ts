/** Finds where the served read models say other money than those that replace them (ADR-0123). */
import { setImmediate as turn } from 'node:timers/promises';
import type { PaymentResponse } from '../shared/payment/payment-response.ts';
import type { DocumentRow } from '../shared/read-models/document-row.ts';
import { documentPages } from '../shared/read-models/pages.ts';
import type { ReadModels, StoredDocument } from '../shared/read-models/port.ts';

const NAMED_MAX = 100;
/** A database has few connections, and merchants use them too. */
const AT_ONCE = 4;

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

const differenceOf = (
  paymentId: string,
  old: StoredDocument,
  next: StoredDocument,
): MoneyDifference | undefined => {
  // Without its check a document proves nothing; one that was parked is known to be behind.
  if (old.row === undefined || !old.whole || old.parked) return undefined;
  const served = moneyOf(old.row);
  const inLog = next.row === undefined ? null : moneyOf(next.row);
  if (JSON.stringify(served) === JSON.stringify(inLog)) return undefined;
  return { paymentId, served, inLog };
};

type Old = Pick<ReadModels, 'idsAfter' | 'inspect'>;
type Next = Pick<ReadModels, 'inspect'>;

const compareSome = async (old: Old, next: Next, ids: string[]): Promise<MoneyDifference[]> => {
  const differences = await Promise.all(
    ids.map(async (id) => differenceOf(id, await old.inspect(id), await next.inspect(id))),
  );
  return differences.filter((one) => one !== undefined);
};

export const moneyDifferences = async (old: Old, next: Next): Promise<MoneyDifferences> => {
  const found: MoneyDifferences = { count: 0, named: [] };
  for await (const ids of documentPages(old, AT_ONCE)) {
    const differences = await compareSome(old, next, ids);
    found.count += differences.length;
    found.named.push(...differences.slice(0, NAMED_MAX - found.named.length));
    // In one process no read waits for anything: the event loop would never get its turn.
    await turn();
  }
  return found;
};
