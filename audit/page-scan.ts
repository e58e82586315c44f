/** A page that may have to look at many events: a scan (shared/event-store/scan-log.ts). */
import type { LogScan } from '../shared/event-store/scan-log.ts';
import { isFiltered, LIMIT, type LogRequest, logPage } from './log.ts';
import { createMerchantLookup, readModelsOver } from './merchants.ts';

/** Module URL to pass to scanLog(). */
export const PAGE_SCAN = import.meta.url;

export type PageArgs = { requested: LogRequest; only: string | undefined };

/** A short page costs less than its message to another thread. */
export const isLongPage = ({ requested, only }: PageArgs): boolean =>
  isFiltered(requested, only) || (requested.limit ?? LIMIT) > LIMIT;

/**
 * The body of the response: writing the JSON text is a part of the work. Throws StoreUnavailable.
 */
export const scan: LogScan<PageArgs, never, string> = async (
  log,
  { requested, only },
  { call },
) => {
  const merchants = createMerchantLookup(log, readModelsOver(call));
  return JSON.stringify(await logPage({ log, merchants }, requested, only));
};
