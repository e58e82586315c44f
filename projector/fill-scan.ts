/**
 * Fills a new generation of read models from the log in a thread of its own: a scan
 * (shared/event-store/scan-log.ts), or several at once, each for a share of the streams. It ends at the
 * place that was the served checkpoint when it was ordered; the rest is the rebuild's (rebuild.ts).
 */

import { decodeForm } from '../shared/event-store/decode-form.ts';
import type { Position } from '../shared/event-store/port.ts';
import { readPatiently } from '../shared/event-store/read-page.ts';
import type { LogScan } from '../shared/event-store/scan-log.ts';
import { type Share, takes, WHOLE } from '../shared/event-store/shares.ts';
import type { OpenGeneration } from '../shared/read-models/port.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import type { ScanTools } from '../shared/runtime/scan.ts';
import { createProjection } from './projection.ts';

/** The address of this module, for who orders the scan. */
export const FILL_SCAN = import.meta.url;

/** `generation` is what `handOver` gives. */
export type FillArgs = {
  generation: { module: string; args: unknown };
  until: Position | null;
  /** Left out: the whole log. */
  share?: Share;
  /** What several shares have filled already, all of it; `at` is its checkpoint. */
  filled?: Pick<Filled, 'at' | 'hash'>;
};

/** Events in the generation, the place up to which the log was read, and the log hash there. */
export type Filled = { events: number; at: Position | null; hash?: string | undefined };

const PAGE = 1_000;
/** Nobody reads the generation yet. */
export const NOT_READ = { applied: () => {}, starting: () => {}, lost: () => {} };

/** A log whose lines are written where the scan was ordered. */
const logOver = (call: ScanTools['call']): Logger => {
  const lineOf = (level: string) => (fields: object, message: string) =>
    void call(level, fields, message).catch(() => undefined);
  return { info: lineOf('info'), warn: lineOf('warn'), error: lineOf('error') };
};

/** Yields after each page. Throws what the engines throw. */
export const scan: LogScan<FillArgs, Filled, Filled> = async function* (
  store,
  { generation, until, share = WHOLE, filled },
  { signal, call },
) {
  const { open }: { open: OpenGeneration } = await import(generation.module);
  const readModels = open(generation.args, share);
  try {
    if (filled !== undefined) await readModels.apply([], null, filled.at, filled.hash);
    const logger = logOver(call);
    const projection = createProjection({ store, readModels, freshness: NOT_READ, logger });
    const isOwn = takes(share);
    let at = await projection.start();
    let hash: string | undefined;
    const soFar = (): Filled => ({ events: projection.counts().events, at, hash });
    while (at !== until && !signal.aborted) {
      const forms = await readPatiently(store.stored, signal, at, PAGE, until);
      const last = forms.at(-1);
      if (last === undefined) break;
      await projection.events(forms.filter(({ stream }) => isOwn(stream)).map(decodeForm));
      at = last.position;
      hash = last.logHash;
      yield soFar();
    }
    return soFar();
  } finally {
    await readModels.close();
  }
};
