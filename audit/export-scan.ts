/** The lines of an export of the log: a scan (shared/event-store/scan-log.ts). */
import type { LogScan } from '../shared/event-store/scan-log.ts';
import { type LogRequest, logLines } from './log.ts';
import { createMerchantLookup, readModelsOver } from './merchants.ts';

/** Module URL to pass to scanLog(). */
export const EXPORT_SCAN = import.meta.url;

export type ExportArgs = { requested: LogRequest; only: string | undefined };

/** Characters handed over at once: each time costs the reader a message. */
const TEXT_MIN = 64 * 1024;

/** Many lines in each text. Throws StoreUnavailable. */
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
