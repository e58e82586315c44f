/** A page of the log for who may have to look at many events for it: a scan (shared/event-store/scan-log.ts). */
import type { LogScan } from '../shared/event-store/scan-log.ts';
import { isFiltered, LIMIT, type LogRequest, logPage } from './log.ts';
import { createMerchantLookup } from './merchants.ts';
import { readModelsOver } from './scan-calls.ts';

/** The address of this module, for who orders the scan. */
export const PAGE_SCAN = import.meta.url;

/** The part of the log that was requested; of one merchant `only`, or of all. */
export type PageArgs = { requested: LogRequest; only: string | undefined };

/** Whether a page is read as a scan: a short one costs less than its message to another thread. */
export const isLongPage = ({ requested, only }: PageArgs): boolean =>
  isFiltered(requested, only) || (requested.limit ?? LIMIT) > LIMIT;

/** The body of the response, since writing the JSON text is a part of the work. Throws StoreUnavailable. */
export const scan: LogScan<PageArgs, never, string> = async (
  log,
  { requested, only },
  { call },
) => {
  const merchants = createMerchantLookup(log, readModelsOver(call));
  return JSON.stringify(await logPage({ log, merchants }, requested, only));
};
