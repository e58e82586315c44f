/**
 * The end of the provider's ledger, found in a bounded number of requests. The protocol gives the
 * ledger oldest first from a sequence number on (provider.md), so the end is searched for: in steps
 * that double until nothing comes after, then by halves. Sequence numbers may have gaps.
 */
import type { LedgerEntry, Provider } from '../provider/port.ts';

/** Entries of one page; a provider over HTTP gives no more than this at once. */
const PAGE = 100;
/** Doubling and halving over every safe integer takes half of it. */
const REQUESTS_MAX = 220;

/**
 * The last entries after `floor`, oldest first: a page of them at most, none where the ledger ends
 * at `floor`. Throws what the provider's ledger throws, and Error where the ledger has no end.
 */
export const ledgerTail = async (
  provider: Pick<Provider, 'ledger'>,
  floor: number,
): Promise<LedgerEntry[]> => {
  /** An entry lies after `low`; none lies after `high`. */
  let low = floor;
  let high: number | undefined;
  let step = PAGE;
  let at = floor;
  for (let requests = 0; requests < REQUESTS_MAX; requests += 1) {
    const { entries, next } = await provider.ledger(at, PAGE);
    const last = entries.at(-1)?.sequence;
    if (last === undefined) {
      if (at === floor) return [];
      high = at;
    } else if (next === null) return withThoseBefore(provider, floor, entries);
    else low = Math.max(last, low);
    if (high !== undefined) at = low + Math.floor((high - low) / 2);
    else {
      at = Math.min(low + step, Number.MAX_SAFE_INTEGER);
      step *= 2;
    }
  }
  throw new Error("the end of the provider's ledger was not found");
};

/** The search may have met the end with its last entry alone: a page that ends there says more. */
const withThoseBefore = async (
  provider: Pick<Provider, 'ledger'>,
  floor: number,
  found: LedgerEntry[],
): Promise<LedgerEntry[]> => {
  const last = found.at(-1)?.sequence ?? floor;
  const { entries } = await provider.ledger(Math.max(floor, last - PAGE), PAGE);
  // A provider whose pages are smaller gives the first of them only.
  return entries.at(-1)?.sequence === last ? entries : found;
};
