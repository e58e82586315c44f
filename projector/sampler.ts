/** Compares payments with the log for ever (ADR-0121), one at a time, and all of them on request. */
import { documentPages } from '../shared/read-models/pages.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { oneRunAtATime } from '../shared/runtime/scheduling.ts';
import {
  type CompareAllOptions,
  type Comparison,
  compareAll,
  comparePayment,
  type Difference,
  type DifferenceKind,
  paymentPages,
} from './compare.ts';
import { ComparisonRunning } from './errors.ts';
import type { Projection } from './projection.ts';

/** One payment is taken out of so many documents, or of those that begin in so many events. */
const STRETCH = 50;
/** The gauge stops there. */
const DIFFERENCES_MAX = 10_000;
const DAMAGED_MAX = 1_000;

/** A document that has its check and differs stays: it may be the only trace of a change of the log. */
const REPAIRED: readonly DifferenceKind[] = ['missing', 'damaged', 'older', 'unlisted'];
/** A damaged index looks like these: written again, the document would be there twice. */
const BY_INDEX: readonly DifferenceKind[] = ['missing', 'unlisted'];

type SamplerOptions = {
  store: CompareAllOptions['store'];
  readModels: CompareAllOptions['readModels'] & Pick<ReadModels, 'onDamage'>;
  projection: Pick<Projection, 'repair'>;
  /** False where the old read models are still served. */
  rebuild(): Promise<boolean>;
  logger: Logger;
  isReady(): boolean;
  everyMs: number;
};

const oneOf = <T>(all: readonly T[]): T | undefined => all[Math.floor(Math.random() * all.length)];

/** Once through the documents, where forged and older ones are met, and the log, where missing ones are. */
async function* samplesOf({
  store,
  readModels,
}: Pick<SamplerOptions, 'store' | 'readModels'>): AsyncGenerator<string | undefined, void> {
  for await (const ids of documentPages(readModels, STRETCH)) yield oneOf(ids);
  for await (const ids of paymentPages(store, STRETCH)) yield oneOf(ids);
}

type Sampling = SamplerOptions & {
  differences: Map<string, DifferenceKind>;
  /** Payments whose damage a read has found. */
  damaged: Set<string>;
  samples: number;
  /** Stays true where the rebuild failed. */
  isRebuilding: boolean;
  isComparingAll: boolean;
  stopping: AbortController;
};

const rebuildAnew = async (own: Sampling): Promise<void> => {
  own.isRebuilding = true;
  try {
    own.isRebuilding = !(await own.rebuild());
  } catch (error) {
    const reason = reasonOf(error);
    own.logger.warn({ reason }, 'the damaged read models could not be filled anew');
  }
};

const checkIndexes = async (own: Sampling, signal?: AbortSignal): Promise<boolean> => {
  if (own.isRebuilding) return true;
  const detail = await own.readModels.indexDamage?.(signal);
  if (detail === undefined) return false;
  own.differences.set(detail, 'unlisted');
  own.logger.error(
    { detail },
    'read models are damaged, so lists leave payments out: they are filled anew from the event log',
  );
  void rebuildAnew(own);
  return true;
};

const note = async (own: Sampling, { paymentId, kind, detail }: Difference): Promise<void> => {
  const { differences, logger, projection } = own;
  const isKnown = differences.get(paymentId) === kind;
  if (differences.size < DIFFERENCES_MAX) differences.set(paymentId, kind);
  const isRepaired = REPAIRED.includes(kind);
  if (!isKnown || isRepaired)
    logger.error(
      { paymentId, kind, detail, repaired: isRepaired },
      'read model differs from the log: compare all with `payments verify --read-models`, fill them anew with `payments projections rebuild`',
    );
  if (BY_INDEX.includes(kind) && (await checkIndexes(own))) return;
  if (isRepaired) await projection.repair(paymentId);
};

const check = async (own: Sampling, paymentId: string): Promise<void> => {
  const difference = await comparePayment(own, paymentId);
  own.samples += 1;
  if (difference !== undefined) await note(own, difference);
};

const checkDamaged = async (own: Sampling): Promise<void> => {
  for (const paymentId of own.damaged) {
    own.damaged.delete(paymentId);
    await check(own, paymentId);
  }
};

const remember = (own: Sampling, found: readonly Difference[]): void => {
  own.isRebuilding = false;
  own.differences.clear();
  const differing = found.filter(({ kind }) => kind !== 'parked');
  for (const { paymentId, kind } of differing.slice(0, DIFFERENCES_MAX))
    own.differences.set(paymentId, kind);
};

const compareEach = async (
  own: Sampling,
  onProgress: CompareAllOptions['onProgress'],
): Promise<Comparison> => {
  if (own.isComparingAll) throw new ComparisonRunning('the read models are being compared already');
  own.isComparingAll = true;
  try {
    const { store, readModels, stopping } = own;
    const found = await compareAll({ store, readModels, onProgress, signal: stopping.signal });
    remember(own, found.named);
    if (found.differences > 0) await checkIndexes(own, stopping.signal).catch(() => false);
    return found;
  } finally {
    own.isComparingAll = false;
  }
};

export const startSampler = (options: SamplerOptions) => {
  const own: Sampling = {
    ...options,
    differences: new Map(),
    damaged: new Set(),
    samples: 0,
    isRebuilding: false,
    isComparingAll: false,
    stopping: new AbortController(),
  };
  let samples = samplesOf(own);
  const sample = async (): Promise<void> => {
    const { value: paymentId, done } = await samples.next();
    // Where an engine was out of reach as well.
    if (done) samples = samplesOf(own);
    if (paymentId) await check(own, paymentId);
  };
  const unlessBusy = oneRunAtATime(async (step?: () => Promise<void>): Promise<void> => {
    if (!own.isReady()) return;
    try {
      await step?.();
      await checkDamaged(own);
    } catch {
      // An engine is out of reach: the next sample tries again.
    }
  });
  const timer = setInterval(() => void unlessBusy(sample), own.everyMs);
  timer.unref();
  // A damage that a read has found is repaired at once, or at the next sample.
  own.readModels.onDamage((paymentId) => {
    if (own.damaged.size < DAMAGED_MAX) own.damaged.add(paymentId);
    void unlessBusy();
  });

  return {
    counts: () => ({ samples: own.samples, differences: own.differences.size }),
    compareAll: (onProgress: CompareAllOptions['onProgress']) => compareEach(own, onProgress),
    /** The read models were filled anew. */
    forget: (): void => remember(own, []),
    /** Fills the read models anew where an index is damaged; then true. Throws ReadModelsUnavailable. */
    checkIndexes: (signal?: AbortSignal) => checkIndexes(own, signal),
    stop: (): void => {
      own.stopping.abort();
      clearInterval(timer);
    },
  };
};
