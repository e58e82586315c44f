/**
 * Fills a new generation of read models from the log. The served generation is read and updated
 * meanwhile; the last step compares both at one checkpoint and switches in one step, unless the old
 * read models say other money than the log. The relay has its own checkpoint: a rebuild publishes nothing.
 */
import { totalUpTo } from '../shared/event-store/log-progress.ts';
import type { LogReader, Position } from '../shared/event-store/port.ts';
import type {
  NextGeneration,
  ParkedPayment,
  ReadModelsChecksum,
  ReadModelsReader,
  ReadModelsRebuild,
  ReadModelsWriter,
} from '../shared/read-models/port.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { RebuildImpossible } from './errors.ts';
import { fillElsewhere } from './fill-elsewhere.ts';
import { type Filled, NOT_READ } from './fill-scan.ts';
import { type MoneyDifferences, moneyDifferences } from './money-differences.ts';
import { createProjection, type Projection } from './projection.ts';

/** A batch on the event loop holds every request up. */
const BATCH = 100;
const PARKED_NAMED_MAX = 1_000;
const PARKED_PAGE = 250;
const NONE: MoneyDifferences = { count: 0, named: [] };

export type RebuildProgress = {
  /** Events in the new read models, and in the log up to the served checkpoint. */
  done: number;
  total: number;
  /** Whether `total` is an estimate. */
  estimated: boolean;
  /** Events per second since the rebuild began. */
  perSecond: number;
  secondsLeft: number;
};

export type RebuildResult = {
  events: number;
  seconds: number;
  checkpoint: Position | null;
  /** Both at `checkpoint`. */
  old: ReadModelsChecksum;
  new: ReadModelsChecksum;
  equal: boolean;
  /** False where the old read models are still served, because their money differs (ADR-0123). */
  served: boolean;
  /** Payments of which the old read models say other money than the log. */
  money: MoneyDifferences;
  /** Payments whose events the new read models could not take: at most 1,000. */
  parked: ParkedPayment[];
};

export type RebuildOptions = {
  store: LogReader;
  readModels: Pick<ReadModelsWriter, 'checkpoint' | 'load'> &
    Pick<ReadModelsReader, 'idsAfter' | 'inspect' | 'parked'> &
    ReadModelsRebuild;
  /** In how many threads they are filled; left out: as many as are worth it. */
  shares?: number;
  /** Serves the new read models also where the old ones say other money. */
  accept?: boolean;
  logger: Logger;
  /** Runs a step while no event is applied to the served read models. */
  hold<T>(step: () => Promise<T>): Promise<T>;
  /** Called after every batch. */
  onProgress?(progress: RebuildProgress): void;
  signal?: AbortSignal;
};

/** The next events of the new read models, none beyond the served checkpoint: both end at one place. */
const nextEvents = async (
  { store }: RebuildOptions,
  from: Position | null,
  until: Position | null,
) => {
  if (from === until) return [];
  const events = await store.readAll(from, BATCH, until);
  if (events.length === 0)
    throw new RebuildImpossible('the log ends before the checkpoint of the read models');
  return events;
};

/**
 * Fills until the last batch had at most `left` events before the served checkpoint. That checkpoint
 * moves meanwhile, perhaps as fast as this loop: it is certain to be reached only under `hold`.
 */
const fill = async (
  options: RebuildOptions,
  projection: Projection,
  report: (until: Position | null) => void,
  left: number,
) => {
  for (;;) {
    options.signal?.throwIfAborted();
    const until = await options.readModels.checkpoint();
    const events = await nextEvents(options, projection.checkpoint(), until);
    if (events.length > 0) await projection.events(events);
    report(until);
    if (events.length <= left) return;
  }
};

const progressOf = ({ onProgress }: RebuildOptions) => {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  return {
    seconds,
    report: (until: Position | null, { events: done, at }: Filled): void => {
      const perSecond = done / Math.max(seconds(), 0.001);
      const { total, isExact } = totalUpTo(until, { read: done, at });
      onProgress?.({
        done,
        total,
        estimated: !isExact,
        perSecond,
        secondsLeft: done === 0 ? 0 : (total - done) / perSecond,
      });
    },
  };
};

/**
 * Parks the payments in the new read models that are parked in the old ones because the store no longer
 * holds their streams whole, with the documents that they had: until a scavenge the log still has
 * their events, and after it the document is the only trace of the payment.
 */
const parkRemoved = async (
  { readModels }: RebuildOptions,
  next: NextGeneration,
  projection: Projection,
): Promise<void> => {
  let page = await readModels.parked(PARKED_PAGE);
  while (page.length > 0) {
    for (const { paymentId } of page) {
      const old = await readModels.load(paymentId);
      const { row, parked } = await next.inspect(paymentId);
      const isKept = (row?.revision ?? -1) >= (old?.revision ?? -1);
      if (!parked || !isKept) await projection.removal(paymentId, old);
    }
    page = await readModels.parked(PARKED_PAGE, page.at(-1));
  }
};

const fillAndServe = async (
  options: RebuildOptions,
  next: NextGeneration,
): Promise<RebuildResult> => {
  const { store, readModels, logger, hold } = options;
  const { report, seconds } = progressOf(options);
  const elsewhere = await fillElsewhere(options, next, report);
  const projection = createProjection({ store, readModels: next, freshness: NOT_READ, logger });
  await projection.start();
  const events = (): number => elsewhere + projection.counts().events;
  const reportHere = (until: Position | null): void =>
    report(until, { events: events(), at: projection.checkpoint() });
  await fill(options, projection, reportHere, BATCH - 1);
  return hold(async () => {
    await fill(options, projection, reportHere, 0);
    await parkRemoved(options, next, projection);
    const [before, after] = await Promise.all([readModels.checksum(), next.checksum()]);
    const equal = before.hash === after.hash && before.documents === after.documents;
    const money = equal ? NONE : await moneyDifferences(readModels, next);
    const parked = await next.parked(PARKED_NAMED_MAX);
    options.signal?.throwIfAborted();
    const served = money.count === 0 || options.accept === true;
    if (served) await next.serve();
    return {
      events: events(),
      seconds: seconds(),
      checkpoint: projection.checkpoint(),
      old: before,
      new: after,
      equal,
      served,
      money,
      parked,
    };
  });
};

/**
 * Rebuilds the read models. Throws RebuildRunning while another rebuild is under way,
 * RebuildImpossible, what the engines throw, and the signal's reason; then the old read models are
 * still served, or the new ones where a database stored the switch and did not acknowledge it.
 */
export const rebuild = async (options: RebuildOptions): Promise<RebuildResult> => {
  const next = await options.readModels.openGeneration();
  try {
    return await fillAndServe(options, next);
  } finally {
    // A generation that cannot be removed now is removed at the next rebuild.
    await next.end().catch(() => undefined);
  }
};
