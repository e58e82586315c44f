/** Compares read models and log; only a start mends, by its check of the indexes (ADR-0121, gaps §28). */
import { scanLog } from '../shared/event-store/scan-log.ts';
import { logDamage } from '../shared/read-models/damage.ts';
import { unlessLost } from '../shared/read-models/errors.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { resultOf } from '../shared/runtime/jobs.ts';
import { type ComparisonProgress, compareAll, compareFile } from './compare.ts';
import type { ReadModelsComparison as Comparison } from './contract.ts';
import { ComparisonRunning } from './errors.ts';
import type { RebuildOptions, RebuildResult } from './rebuild.ts';

const DIFFER =
  'read models differ from the log: after `payments verify --all`, `payments projections rebuild` fills them anew';
const NAMED_IN_LINE = 10;

type Options = Pick<RebuildOptions, 'store' | 'logger'> & { readModels: ReadModels };
type OnProgress = (progress: ComparisonProgress) => void;

export const createComparisons = ({ store, readModels, logger }: Options) => {
  /** By the last comparison, without the documents that reads count. */
  let differing = 0;
  let isComparing = false;
  let leaving = new AbortController();
  let ended: Promise<void> = Promise.resolve();
  logDamage(readModels, logger);

  /** In the thread of the log, where that can open the read models. */
  const begin = (indexesAlone: boolean, onProgress?: OnProgress): Promise<Comparison> => {
    const { signal } = leaving;
    const there = readModels.compareElsewhere?.((file) => {
      const steps = scanLog(store, compareFile, { ...file, indexesAlone }, { signal, calls: {} });
      return resultOf(steps, onProgress);
    });
    const steps = () => compareAll({ store, readModels }, signal, indexesAlone);
    return there ?? resultOf(steps(), onProgress);
  };

  const compare = async (indexesAlone: boolean, onProgress?: OnProgress): Promise<Comparison> => {
    const result = begin(indexesAlone, onProgress);
    ended = Promise.allSettled([ended, result]).then(() => undefined);
    const found = await result;
    const { kinds, named, differences } = found;
    const { parked = 0, damaged = 0 } = kinds;
    differing = differences - parked - damaged;
    const withoutCheck = named.filter(({ kind }) => kind === 'damaged');
    const read = [...readModels.damaged(), ...withoutCheck.map(({ paymentId }) => paymentId)];
    for (const paymentId of indexesAlone ? [] : read) await readModels.inspect(paymentId);
    const first = named.slice(0, NAMED_IN_LINE);
    if (differences > parked) logger.error({ kinds, first }, DIFFER);
    return found;
  };

  /** Throws ComparisonRunning, what the engines throw, and an AbortError. */
  const whole = async (onProgress?: OnProgress): Promise<Comparison> => {
    if (isComparing)
      throw new ComparisonRunning(
        'the read models are being compared already; try again when that has ended',
      );
    isComparing = true;
    return compare(false, onProgress).finally(() => {
      isComparing = false;
    });
  };

  /** Without a person who waits for it. */
  const unasked = async (work: () => Promise<unknown>): Promise<void> => {
    const { signal } = leaving;
    await work().catch((error: unknown) => {
      if (signal.aborted) return;
      logger.warn({ reason: reasonOf(error) }, 'the read models could not be compared');
    });
  };

  const stop = async (): Promise<void> => {
    leaving.abort();
    leaving = new AbortController();
    await ended;
  };

  return {
    whole,
    scheduled: () => unasked(whole),
    /** At a start; a damaged file is filled anew by `rebuild`. */
    indexes: (rebuild: () => Promise<RebuildResult>) =>
      unasked(async () => {
        const found = await compare(true).catch(unlessLost);
        if (found?.differences === 0) return;
        const { served } = await rebuild();
        logger.warn({ served }, 'damaged read models were filled anew from the event log');
      }),
    /** Documents; a damaged file counts as one. */
    differences: (): number => readModels.damaged().length + differing,
    /** Others are served: what was found, or is being compared, is of those before. */
    forget: (): void => {
      differing = 0;
      void stop();
    },
    stop,
  };
};
