/**
 * Fills a new generation of read models from the log in a thread of its own: a scan
 * (shared/event-store/scan-log.ts). It ends at the place that was the served checkpoint when it was
 * ordered; the rest is the rebuild's (rebuild.ts).
 */

import type { Position } from '../shared/event-store/port.ts';
import type { LogScan } from '../shared/event-store/scan-log.ts';
import type { OpenGeneration } from '../shared/read-models/port.ts';
import type { ScanTools } from '../shared/runtime/scan.ts';
import { createProjection } from './projection.ts';
import type { Log } from './subscription.ts';

/** The address of this module, for who orders the scan. */
export const FILL_SCAN = import.meta.url;

/** `generation` is what `handOver` gives. */
export type FillArgs = {
  generation: { module: string; args: unknown };
  until: Position | null;
};

/** Events in the generation, and the place of the last one. */
export type Filled = { events: number; at: Position | null };

const PAGE = 1_000;
/** Nobody reads the generation yet. */
export const NOT_READ = { applied: () => {}, starting: () => {}, lost: () => {} };

/** A log whose lines are written where the scan was ordered. */
const logOver = (call: ScanTools['call']): Log => {
  const lineOf = (level: string) => (fields: object, message: string) =>
    void call(level, fields, message).catch(() => undefined);
  return { info: lineOf('info'), warn: lineOf('warn'), error: lineOf('error') };
};

/** Yields after each page. Throws what the engines throw. */
export const scan: LogScan<FillArgs, Filled, Filled> = async function* (
  store,
  { generation, until },
  { signal, call },
) {
  const { open }: { open: OpenGeneration } = await import(generation.module);
  const readModels = open(generation.args);
  try {
    const logger = logOver(call);
    const projection = createProjection({ store, readModels, freshness: NOT_READ, logger });
    const filled = (): Filled => ({
      events: projection.counts().events,
      at: projection.checkpoint(),
    });
    await projection.start();
    while (projection.checkpoint() !== until && !signal.aborted) {
      const events = await store.readAll(projection.checkpoint(), PAGE, until);
      if (events.length === 0) break;
      await projection.events(events);
      yield filled();
    }
    return filled();
  } finally {
    await readModels.close();
  }
};
