/** Fills a new generation in threads of its own, where log and generation can be opened there. */
import type { LogReader, Position } from '../shared/event-store/port.ts';
import { scanLog, scanShares } from '../shared/event-store/scan-log.ts';
import { sharesOf } from '../shared/event-store/shares.ts';
import type { NextGeneration, ReadModelsWriter } from '../shared/read-models/port.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { resultOf } from '../shared/runtime/scan.ts';
import { RebuildImpossible } from './errors.ts';
import { FILL_SCAN, type FillArgs, type Filled } from './fill-scan.ts';

/** Fewer events than this are left to the event loop. */
const FEW = 1_000;

export type FillOptions = {
  store: LogReader;
  readModels: Pick<ReadModelsWriter, 'checkpoint'>;
  logger: Logger;
  signal?: AbortSignal | undefined;
  /** In how many threads the empty generation is filled; left out: as many as are worth it. */
  shares?: number | undefined;
};

type Generation = FillArgs['generation'];

/** Throws where the log ends before the served checkpoint. */
const rejectShort = (ended: readonly Filled[], of: number, until: Position | null): void => {
  if (ended.length < of || ended.some(({ at }) => at !== until))
    throw new RebuildImpossible('the log ends before the checkpoint of the read models');
};

/**
 * Fills up to the served checkpoint, round after round while much has come meanwhile. Returns how many
 * events that were: none where no thread can do it. Throws what the engines throw, and the signal's reason.
 */
export const fillElsewhere = async (
  { store, readModels, logger, signal, shares }: FillOptions,
  next: NextGeneration,
  report: (until: Position | null, filled: Filled) => void,
): Promise<number> => {
  const { handOver } = next;
  if (handOver === undefined || store.stored.scan === undefined) return 0;
  const line = (level: keyof Logger) => async (fields: object, message: string) =>
    logger[level](fields, message);
  const calls = { info: line('info'), warn: line('warn'), error: line('error') };
  const orderOf = (args: FillArgs) => ({ module: FILL_SCAN, args, calls, signal });

  /** All shares write to one file, and the checkpoint only when all of them have ended. */
  const fillShares = async (generation: Generation, until: Position | null, of: number) => {
    const filling = scanShares<Filled, Filled>(store, of, (share) =>
      orderOf({ generation, until, share }),
    );
    const sumOf = (all: readonly Filled[]) => all.reduce((sum, { events }) => sum + events, 0);
    let step = await filling.next();
    for (; step.done !== true; step = await filling.next())
      report(until, { events: sumOf(step.value), at: step.value[0]?.at ?? null });
    signal?.throwIfAborted();
    rejectShort(step.value, of, until);
    const filled = { at: until, hash: step.value[0]?.hash };
    await resultOf(scanLog(store, orderOf({ generation, until, filled })));
    return sumOf(step.value);
  };

  const fillWhole = async (generation: Generation, until: Position | null, before: number) => {
    let events = 0;
    const filling = scanLog<Filled, Filled>(store, orderOf({ generation, until }));
    for await (const { events: more, at } of filling) {
      events = more;
      report(until, { events: before + events, at });
    }
    signal?.throwIfAborted();
    return events;
  };

  const fillTo = (until: Position | null, before: number): Promise<number> => {
    const of = before === 0 && until !== null ? (shares ?? sharesOf(store, until)) : 1;
    return handOver((generation) =>
      of > 1 ? fillShares(generation, until, of) : fillWhole(generation, until, before),
    );
  };

  let events = 0;
  for (let last = FEW; last >= FEW; events += last) {
    last = await fillTo(await readModels.checkpoint(), events);
  }
  return events;
};
