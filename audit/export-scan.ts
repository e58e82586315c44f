/** The lines of an export of the log: a scan (shared/event-store/scan-log.ts). */
import type { LogScan } from '../shared/event-store/scan-log.ts';
import { type LogRequest, logLines } from './log.ts';
import { createMerchantLookup } from './merchants.ts';
import { readModelsOver } from './scan-calls.ts';

/** The address of this module, for who orders the scan. */
export const EXPORT_SCAN = import.meta.url;

/** The part of the log that was requested; of one merchant `only`, or of all. */
export type ExportArgs = { requested: LogRequest; only: string | undefined };

/** So many characters are handed over at once: each time costs the reader a message. */
const TEXT_MIN = 64 * 1024;

/** The lines, many of them in each text. Throws StoreUnavailable. */
export const scan: LogScan<ExportArgs, string, void> = async function* (
  log,
  { requested, only },
  { signal, call },
) {
  const merchants = createMerchantLookup(log, readModelsOver(call));
  let text = '';
  for await (const line of logLines({ log, merchants }, requested, only, signal)) {
    text += line;
    if (text.length < TEXT_MIN) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
};
