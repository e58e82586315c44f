/** Compares payments with the log for ever (ADR-0121), by turns one of the documents and one of the log. */
import type { EventStore, Position } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/payment-events.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { comparePayment, type Difference, type DifferenceKind } from './compare.ts';
import type { Projection } from './projection.ts';

/** One payment is taken out of so many documents, or events, in a row. */
const STRETCH = 50;
/** The gauge stops there. */
const DIFFERENCES_MAX = 10_000;
const DAMAGED_MAX = 1_000;

/** A document that has its check and differs stays: it may be the only trace of a change of the log. */
const REPAIRED: readonly DifferenceKind[] = ['missing', 'damaged', 'older', 'unlisted'];
/** A damaged index looks like these: written again, the document would be there twice. */
const BY_INDEX: readonly DifferenceKind[] = ['missing', 'unlisted'];

type SamplerOptions = {
  store: Pick<EventStore, 'readStream' | 'readAll'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'inspect' | 'idsAfter' | 'onDamage' | 'indexDamage'>;
  projection: Pick<Projection, 'repair'>;
  /** False where the old read models are still served. */
  rebuild(): Promise<boolean>;
  logger: Logger;
  isReady(): boolean;
  everyMs: number;
};

const oneOf = <T>(all: readonly T[]): T | undefined => all[Math.floor(Math.random() * all.length)];

const documentsInTurn = ({ readModels }: Pick<SamplerOptions, 'readModels'>) => {
  let last: string | null = null;
  return async (): Promise<string | undefined> => {
    const ids = await readModels.idsAfter(last, STRETCH);
    last = ids.length < STRETCH ? null : (ids.at(-1) ?? null);
    return oneOf(ids);
  };
};

const eventsInTurn = ({ store }: Pick<SamplerOptions, 'store'>) => {
  let last: Position | null = null;
  return async (): Promise<string | undefined> => {
    const events = await store.readAll(last, STRETCH);
    last = events.length < STRETCH ? null : (events.at(-1)?.position ?? null);
    return oneOf(events.flatMap(({ stream }) => paymentOf(stream) ?? []));
  };
};

export const startSampler = (options: SamplerOptions) => {
  const { readModels, projection, logger, isReady } = options;
  const nextDocument = documentsInTurn(options);
  const nextInLog = eventsInTurn(options);
  const differences = new Map<string, DifferenceKind>();
  const damaged = new Set<string>();
  let samples = 0;
  let turn = 0;
  let busy = false;
  /** Stays true where the rebuild failed. */
  let isRebuilding = false;

  const rebuildAnew = async (): Promise<void> => {
    try {
      isRebuilding = !(await options.rebuild());
    } catch (error) {
      logger.warn({ reason: reasonOf(error) }, 'the damaged read models could not be filled anew');
    }
  };

  /** Fills the read models anew where an index is damaged; then true. Throws ReadModelsUnavailable. */
  const checkIndexes = async (signal?: AbortSignal): Promise<boolean> => {
    if (isRebuilding) return true;
    const detail = await readModels.indexDamage?.(signal);
    if (detail === undefined) return false;
    differences.set(detail, 'unlisted');
    logger.error(
      { detail },
      'read models are damaged, so lists leave payments out: they are filled anew from the event log',
    );
    isRebuilding = true;
    void rebuildAnew();
    return true;
  };

  const note = async ({ paymentId, kind, detail }: Difference): Promise<void> => {
    const isKnown = differences.get(paymentId) === kind;
    if (differences.size < DIFFERENCES_MAX) differences.set(paymentId, kind);
    const isRepaired = REPAIRED.includes(kind);
    if (!isKnown || isRepaired)
      logger.error(
        { paymentId, kind, detail, repaired: isRepaired },
        'read model differs from the log: compare all with `payments verify --read-models`, fill them anew with `payments projections rebuild`',
      );
    if (BY_INDEX.includes(kind) && (await checkIndexes())) return;
    if (isRepaired) await projection.repair(paymentId);
  };

  const check = async (paymentId: string): Promise<void> => {
    const difference = await comparePayment(options, paymentId);
    samples += 1;
    if (difference !== undefined) await note(difference);
  };

  const checkDamaged = async (): Promise<void> => {
    for (const paymentId of damaged) {
      damaged.delete(paymentId);
      await check(paymentId);
    }
  };

  const sample = async (): Promise<void> => {
    turn += 1;
    const paymentId = await (turn % 2 === 0 ? nextDocument() : nextInLog());
    if (paymentId !== undefined) await check(paymentId);
  };

  const unlessBusy = async (step: () => Promise<void>): Promise<void> => {
    if (busy || !isReady()) return;
    busy = true;
    await step()
      .then(checkDamaged)
      .catch(() => undefined);
    busy = false;
  };

  const timer = setInterval(() => void unlessBusy(sample), options.everyMs);
  timer.unref();
  // A damage that a read has found is repaired at once, or at the next sample.
  readModels.onDamage((paymentId) => {
    if (damaged.size < DAMAGED_MAX) damaged.add(paymentId);
    void unlessBusy(checkDamaged);
  });

  return {
    counts: (): { samples: number; differences: number } => ({
      samples,
      differences: differences.size,
    }),
    /** Replaces the remembered differences. */
    known: (found: readonly Difference[]): void => {
      isRebuilding = false;
      differences.clear();
      const differing = found.filter(({ kind }) => kind !== 'parked');
      for (const { paymentId, kind } of differing.slice(0, DIFFERENCES_MAX))
        differences.set(paymentId, kind);
    },
    checkIndexes,
    stop: () => clearInterval(timer),
  };
};

export type Sampler = ReturnType<typeof startSampler>;
