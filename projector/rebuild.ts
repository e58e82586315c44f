/**
 * Fills a new generation of read models from the log, compares both at one checkpoint and switches, unless the
 * old ones' money differs from the log's (ADR-0123). Publishes nothing: the relay has its own checkpoint.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { z } from 'zod';
import { decodeInOrder } from '../shared/event-store/fold-stream.ts';
import type { LogEvent, LogJob, LogReader, Position } from '../shared/event-store/port.ts';
import { readPatiently, scanLog, totalUpTo } from '../shared/event-store/scan-log.ts';
import { type DocumentRow, startChecksum } from '../shared/read-models/document-row.ts';
import { RebuildRunning, unlessLost } from '../shared/read-models/errors.ts';
import { documentPages, parkedPayments } from '../shared/read-models/pages.ts';
import type {
  NextGeneration,
  ReadModelsFile,
  ReadModelsReader,
  ReadModelsRebuild,
  ReadModelsWriter,
} from '../shared/read-models/port.ts';
import { openSqliteGeneration } from '../shared/read-models/sqlite/read-models.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { type LogCalls, logCalls, logOver } from '../shared/runtime/jobs.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { fewAtOnce } from '../shared/runtime/scheduling.ts';
import { moneyShape, type RebuildState } from './contract.ts';
import { RebuildImpossible } from './errors.ts';
import { createProjection, type Projection } from './projection.ts';

/** A larger batch would hold every request up. */
const BATCH = 100;
/** In the thread of the log, where no request waits. */
const THREAD_PAGE = 1_000;
const PARKED_NAMED_MAX = 1_000;
const ID_PAGE = 250;
const NONE: MoneyDifferences = { count: 0, named: [] };
const NO_DOCUMENTS = startChecksum().result();

export type RebuildProgress = Pick<
  RebuildState,
  'done' | 'total' | 'estimated' | 'perSecond' | 'secondsLeft'
>;
export type RebuildResult = NonNullable<RebuildState['result']>;

export type RebuildOptions = {
  store: LogReader;
  readModels: Pick<ReadModelsWriter, 'checkpoint' | 'load'> &
    Pick<ReadModelsReader, 'idsAfter' | 'inspect' | 'parked'> &
    ReadModelsRebuild;
  /** Serves the new read models although the old ones say other money. */
  accept?: boolean;
  logger: Logger;
  hold<T>(step: () => Promise<T>): Promise<T>;
  onProgress?(progress: RebuildProgress): void;
  signal?: AbortSignal;
};

type Filled = { events: number; at: Position | null; until: Position | null };

/** Up to the served checkpoint, to the page that is not full, or an abort. Throws what the engines throw. */
async function* fill(
  { stored }: Pick<LogReader, 'stored'>,
  projection: Projection,
  /** The served checkpoint. It moves meanwhile, perhaps as fast as the loop. */
  checkpoint: () => Promise<Position | null>,
  page: number,
  signal: AbortSignal,
): AsyncGenerator<Filled, void> {
  const decode = decodeInOrder(stored);
  let taken = page;
  while (taken === page && !signal.aborted) {
    const from = projection.checkpoint();
    const until = await checkpoint();
    const forms = from === until ? [] : await readPatiently(stored, signal, from, page, until);
    const events: LogEvent[] = [];
    for (const form of forms) events.push(await decode(form));
    if (events.length > 0) await projection.events(events);
    taken = forms.length;
    yield { events: projection.counts().events, at: projection.checkpoint(), until };
  }
}

type FillCalls = LogCalls & Pick<ReadModelsWriter, 'checkpoint'>;

export const fillGeneration: LogJob<ReadModelsFile, Filled, void, FillCalls> = async function* (
  store,
  file,
  { signal, calls },
) {
  const readModels = openSqliteGeneration(file);
  try {
    const projection = createProjection({ store, readModels, logger: logOver(calls) });
    await projection.start();
    yield* fill(store, projection, calls.checkpoint, THREAD_PAGE, signal);
  } finally {
    await readModels.close();
  }
};

const progressOf = ({ onProgress }: RebuildOptions) => {
  const began = performance.now();
  const seconds = (): number => (performance.now() - began) / 1000;
  return {
    seconds,
    report: ({ events: done, at, until }: Filled): void => {
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

/** With the documents that they had: after a scavenge these are the only trace of such payments. */
const parkRemoved = async (
  { readModels }: RebuildOptions,
  next: NextGeneration,
  projection: Projection,
): Promise<void> => {
  for await (const { paymentId } of parkedPayments(readModels, ID_PAGE)) {
    const old = await readModels.load(paymentId);
    const { row, parked } = await next.inspect(paymentId);
    const isKept = (row?.revision ?? -1) >= (old?.revision ?? -1);
    if (!parked || !isKept) await projection.removal(paymentId, old);
  }
};

/** For a log and read models in files. Returns the number of events; fewer than a page are left. */
const fillInThread = async (
  { store, readModels, logger, signal }: RebuildOptions,
  { handOver }: NextGeneration,
  report: (filled: Filled) => void,
): Promise<number> => {
  let events = 0;
  if (handOver === undefined || store.stored.scan === undefined) return events;
  const calls = { checkpoint: readModels.checkpoint, ...logCalls(logger) };
  await handOver(async (file) => {
    for await (const filled of scanLog(store, fillGeneration, file, { calls, signal })) {
      events = filled.events;
      report(filled);
    }
  });
  return events;
};

const MONEY_NAMED_MAX = 100;

/** `inLog` is null where the log has no such payment. */
type MoneyDifferences = NonNullable<RebuildState['result']>['money'];

/** What a document says of money; sums in minor units. */
const moneyOf = ({ merchantId, body }: DocumentRow): z.infer<typeof moneyShape> => {
  const response = { ...JSON.parse(body), merchantId };
  const fields = Object.keys(moneyShape.shape).map((field) => [field, response[field]]);
  return Object.fromEntries(fields);
};

/** Finds where the served read models say other money than those that replace them (ADR-0123). */
export const moneyDifferences = async (
  old: Pick<ReadModelsReader, 'idsAfter' | 'inspect'>,
  next: Pick<ReadModelsReader, 'inspect'>,
): Promise<MoneyDifferences> => {
  const found: MoneyDifferences = { count: 0, named: [] };
  for await (const ids of documentPages(old, ID_PAGE)) {
    const compared = await fewAtOnce(ids, async (paymentId): Promise<MoneyDifferences['named']> => {
      // In one process no read waits for anything: the event loop would never get its turn.
      await turn();
      const { row, whole, parked } = await old.inspect(paymentId);
      // Without its check a document proves nothing; one that was parked is known to be behind.
      if (row === undefined || !whole || parked) return [];
      const served = moneyOf(row);
      const { row: made } = await next.inspect(paymentId);
      const inLog = made === undefined ? null : moneyOf(made);
      const isSame = JSON.stringify(served) === JSON.stringify(inLog);
      return isSame ? [] : [{ paymentId, served, inLog }];
    });
    const differences = compared.flat();
    found.count += differences.length;
    found.named.push(...differences.slice(0, MONEY_NAMED_MAX - found.named.length));
  }
  return found;
};

const fillAndServe = async (options: RebuildOptions, next: NextGeneration) => {
  const { store, readModels, logger, hold, signal = new AbortController().signal } = options;
  const { report, seconds } = progressOf(options);
  const inThread = await fillInThread(options, next, report);
  const projection = createProjection({ store, readModels: next, logger });
  await projection.start();
  const events = (): number => inThread + projection.counts().events;
  const { checkpoint } = readModels;
  const fillHere = async (): Promise<void> => {
    for await (const { at, until } of fill(store, projection, checkpoint, BATCH, signal))
      report({ events: events(), at, until });
    signal.throwIfAborted();
  };
  await fillHere();
  return hold(async () => {
    // The served checkpoint moves no more: it is certain to be reached.
    await fillHere();
    if (projection.checkpoint() !== (await checkpoint()))
      throw new RebuildImpossible('the log ends before the checkpoint of the read models');
    // What cannot be read is no evidence of anything.
    const parking = parkRemoved(options, next, projection).catch(unlessLost);
    const [before = NO_DOCUMENTS, after] = await Promise.all([
      readModels.checksum().catch(unlessLost),
      parking.then(() => next.checksum()),
    ]);
    const equal = before.hash === after.hash && before.documents === after.documents;
    const differences = equal ? NONE : await moneyDifferences(readModels, next).catch(unlessLost);
    const money = differences ?? NONE;
    const parked = await next.parked(PARKED_NAMED_MAX);
    signal.throwIfAborted();
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
 * Throws RebuildRunning, RebuildImpossible, engine errors and the signal's reason. Then the old read models are
 * still served, or the new ones where a database stored the switch without acknowledging it.
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

export type RebuildRequest = Pick<RebuildOptions, 'onProgress' | 'accept'>;

export const createRebuilds = (options: Omit<RebuildOptions, keyof RebuildRequest | 'signal'>) => {
  const stopping = new AbortController();
  let latest: RebuildState | undefined;
  let running: Promise<unknown> | undefined;

  const runOne = async ({ accept = false, onProgress }: RebuildRequest): Promise<RebuildResult> => {
    const startedAt = new Date().toISOString();
    // Nothing is shown before the first progress: until then another process may be the one that rebuilds.
    let shown: RebuildProgress | undefined;
    const show = (change: Pick<RebuildState, 'state' | 'result' | 'reason'>): void => {
      const ended = change.state === 'running' ? {} : { endedAt: new Date().toISOString() };
      if (shown !== undefined) latest = { startedAt, ...ended, ...shown, ...change };
    };
    const report = (progress: RebuildProgress): void => {
      shown = progress;
      show({ state: 'running' });
      onProgress?.(progress);
    };
    try {
      const own = { accept, signal: stopping.signal, onProgress: report };
      const result = await rebuild({ ...options, ...own });
      show({ state: 'done', result });
      return result;
    } catch (error) {
      show({ state: 'failed', reason: reasonOf(error) });
      throw error;
    }
  };

  return {
    latest: () => latest,
    run: async (request: RebuildRequest = {}): Promise<RebuildResult> => {
      // At the store two of one process would race for the turn.
      if (running !== undefined)
        throw new RebuildRunning('the read models are being rebuilt already');
      const result = runOne(request).finally(() => {
        running = undefined;
      });
      running = Promise.allSettled([result]);
      return result;
    },
    abort: () => stopping.abort(),
    ended: async (): Promise<void> => void (await running),
  };
};
