/** Long reads of the log for auditors, beside the event loop where the store can (scan-log.ts). */
import type { LogReader } from '../shared/event-store/port.ts';
import { type LogScan, scanLog } from '../shared/event-store/scan-log.ts';
import { resultOf } from '../shared/runtime/scan.ts';
import { isFiltered, LIMIT, type LogRequest, logLines, logPage } from './log.ts';
import { createMerchantLookup, readModelsOver, scanCalls } from './merchants.ts';

type Args = { requested: LogRequest; only: string | undefined };

type Deps = { store: LogReader } & Parameters<typeof scanCalls>[0];

const order = (deps: Deps, args: Args) => ({
  module: import.meta.url,
  args,
  calls: scanCalls(deps),
});

/** Characters handed over at once: each time costs the reader a message. */
const TEXT_MIN = 64 * 1024;

export const texts: LogScan<Args, string, void> = async function* (
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

/** The lines of an export, many in each text. Throws StoreUnavailable. */
export const exportTexts = (
  deps: Deps,
  args: Args,
  signal?: AbortSignal,
): AsyncGenerator<string, void> =>
  scanLog(deps.store, { ...order(deps, args), job: 'texts', signal });

/** A short page costs less than its message to another thread. */
export const isLongPage = ({ requested, only }: Args): boolean =>
  isFiltered(requested, only) || (requested.limit ?? LIMIT) > LIMIT;

/** Writing the JSON text is a part of the work. */
export const page: LogScan<Args, never, string> = async (log, { requested, only }, { call }) => {
  const merchants = createMerchantLookup(log, readModelsOver(call));
  return JSON.stringify(await logPage({ log, merchants }, requested, only));
};

export const longPage = (deps: Deps, args: Args): Promise<string> =>
  resultOf(scanLog<never, string>(deps.store, { ...order(deps, args), job: 'page' }));
