/** The end of a ledger that is read oldest first (provider.md): by doubling, then by halves. */
import type { LedgerEntry, Provider } from '../port.ts';

/** Stays within the cap on a body's size, whatever the codes' lengths. */
export const LEDGER_PAGE_MAX = 100;
/** Doubling and halving over every safe integer takes half of it. */
const REQUESTS_MAX = 220;

type Read = Provider['ledger'];

/** None where the ledger ends at `after`. Throws Error where it has no end. */
export const ledgerEnd = async (ledger: Read, after: string | null): Promise<LedgerEntry[]> => {
  const floor = Number(after ?? 0);
  /** An entry lies after `low`, or `low` is that of the last one; none lies after `high`. */
  let low = floor;
  let found: LedgerEntry[] = [];
  let high: number | undefined;
  let step = LEDGER_PAGE_MAX;
  let at = floor;
  for (let requests = 0; requests < REQUESTS_MAX; requests += 1) {
    const { entries, next } = await ledger(String(at), LEDGER_PAGE_MAX);
    const last = entries.at(-1);
    if (last === undefined && at === low) return withThoseBefore(ledger, floor, found);
    if (last !== undefined && next === null) return withThoseBefore(ledger, floor, entries);
    if (last === undefined) high = at;
    else {
      low = Number(last.cursor);
      found = entries;
    }
    if (high !== undefined) at = low + Math.floor((high - low) / 2);
    else {
      at = Math.min(low + step, Number.MAX_SAFE_INTEGER);
      step *= 2;
    }
  }
  throw new Error("the end of the provider's ledger was not found");
};

/** The search may have met the end with its last entry alone. */
const withThoseBefore = async (ledger: Read, floor: number, found: LedgerEntry[]) => {
  const last = found.at(-1)?.cursor;
  if (last === undefined) return found;
  const from = String(Math.max(floor, Number(last) - LEDGER_PAGE_MAX));
  const { entries } = await ledger(from, LEDGER_PAGE_MAX);
  // A provider whose pages are smaller gives the first of them only.
  return entries.at(-1)?.cursor === last ? entries : found;
};
