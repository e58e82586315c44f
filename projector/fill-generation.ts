/** The loop of a rebuild. Over files it runs in the thread of the log, so that no request waits. */
import { decodeForm } from '../shared/event-store/fold-stream.ts';
import type { LogReader, Position } from '../shared/event-store/port.ts';
import { type LogScan, readPatiently } from '../shared/event-store/scan-log.ts';
import type { OpenGeneration } from '../shared/read-models/port.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { ScanTools } from '../shared/runtime/scan.ts';
import { createProjection, type Projection } from './projection.ts';

/** Module URL to pass to scanLog(). */
export const FILL_MODULE = import.meta.url;

const PAGE = 1_000;
/** No request reads the new read models yet. */
export const NOT_READ = { applied: () => {}, starting: () => {}, lost: () => {} };

export type Filled = { events: number; at: Position | null; until: Position | null };

type FillOptions = {
  store: Pick<LogReader, 'stored'>;
  projection: Projection;
  /** The served checkpoint. It moves meanwhile, perhaps as fast as the loop. */
  checkpoint(): Promise<Position | null>;
  page: number;
  signal?: AbortSignal | undefined;
};

/**
 * Fills up to the served checkpoint, never beyond it: both end at one place. Yields after each page, and ends
 * after a page that was not full, or once the signal is aborted. Throws what the engines throw.
 */
export async function* fill({
  store,
  projection,
  checkpoint,
  page,
  signal = new AbortController().signal,
}: FillOptions): AsyncGenerator<Filled, void> {
  let taken = page;
  while (taken === page && !signal.aborted) {
    const from = projection.checkpoint();
    const until = await checkpoint();
    const forms =
      from === until ? [] : await readPatiently(store.stored, signal, from, page, until);
    if (forms.length > 0) await projection.events(forms.map(decodeForm));
    taken = forms.length;
    yield { events: projection.counts().events, at: projection.checkpoint(), until };
  }
}

/** A log whose lines are written by the process that ordered the scan. */
const logOver = (call: ScanTools['call']): Logger => {
  const lineOf = (level: keyof Logger) => (fields: object, message: string) =>
    void call('log', level, fields, message).catch(() => undefined);
  return { info: lineOf('info'), warn: lineOf('warn'), error: lineOf('error') };
};

/** Runs the loop over the generation that `handOver` gives; calls `checkpoint` and `log`. */
export const fillOpened: LogScan<{ module: string; args: unknown }, Filled, void> =
  async function* (store, { module, args }, { signal, call }) {
    const { open }: { open: OpenGeneration } = await import(module);
    const readModels = open(args);
    try {
      const logger = logOver(call);
      const projection = createProjection({ store, readModels, freshness: NOT_READ, logger });
      await projection.start();
      const checkpoint = () => call('checkpoint') as Promise<Position | null>;
      yield* fill({ store, projection, checkpoint, page: PAGE, signal });
    } finally {
      await readModels.close();
    }
  };
