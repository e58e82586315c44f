/** Verifies log and indexes soon after the start, then at an interval; a break is an error line. */
import {
  type Faults,
  faultsOfBreaks,
  openCheckRecord,
  parseCheckRecord,
} from '../../shared/check-record.ts';
import { changesIn, judgeBreaks, type LogBreaks } from '../../shared/event-store/breaks.ts';
import { logIdOf } from '../../shared/event-store/chain.ts';
import type { EventStore, LogReader } from '../../shared/event-store/port.ts';
import type { HeadFile } from '../../shared/event-store/seals.ts';
import { logBreak, verifyWhole } from '../../shared/event-store/verify-log.ts';
import { type KeyDocument, openKeyDocument } from '../../shared/key-document.ts';
import { type RemovalDeps, removedStreams } from '../../shared/read-models/removed-streams.ts';
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
  WIDE_JITTER,
} from '../../shared/runtime/back-off.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { reasonOf } from '../../shared/runtime/error-text.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { resultOf } from '../../shared/runtime/scan.ts';
import type { Projector } from '../compose.ts';

/** A start has other work, and many processes start at once. */
const FIRST_MS = 600_000;

const LOOK_MS = 30_000;

type VerificationOptions = {
  store: LogReader & Pick<EventStore, 'claimMeta' | 'subscribe'>;
  readModels: RemovalDeps['readModels'];
  /** Left out where this process trusts no key. */
  sealingKey?: string | undefined;
  keptHeads?: (() => HeadFile | undefined) | undefined;
  document: KeyDocument;
  everyMs: number;
  mayRun(): boolean;
  checkIndexes?: ((signal: AbortSignal) => Promise<boolean>) | undefined;
  logger: Logger;
  metrics: Pick<Metrics, 'chainVerified' | 'chainWas'>;
  startTimer?: StartTimer;
  nowMs?(): number;
  lookMs?: number;
};

/** Undefined when aborted. Throws StoreUnavailable. */
const verifyOnce = async (
  { store, readModels, sealingKey, keptHeads }: VerificationOptions,
  signal: AbortSignal,
) => {
  // First, because a stream that it names takes no event from then on.
  const inFile = (await store.stored.checkFile?.(signal)) ?? [];
  const kept = keptHeads?.();
  const seals = { log: await logIdOf(store), publicKey: sealingKey, kept };
  const walked = await resultOf(verifyWhole(store, { end: await store.end(), seals }, signal));
  if (walked === undefined) return undefined;
  const isChained = store.stored.guarantee === 'log';
  const beside = isChained ? inFile : (await removedStreams({ store, readModels }, signal)).breaks;
  if (signal.aborted) return undefined;
  return { events: walked.events, breaks: changesIn(judgeBreaks(walked.breaks, beside)) };
};

/** Reads only the kept results before the first run. */
export const startVerification = (options: VerificationOptions) => {
  const { store, document, everyMs, mayRun, logger, metrics } = options;
  const { startTimer = startBackgroundTimer, nowMs = Date.now, lookMs = LOOK_MS } = options;
  const record = openCheckRecord(document, nowMs);
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let noted: Promise<void> = Promise.resolve();
  let cancel = (): void => undefined;

  const note = async (
    breaks: Pick<LogBreaks, 'count' | 'named'>,
    over: Faults['over'],
  ): Promise<void> => {
    const [broken] = breaks.named;
    if (broken !== undefined) logBreak(logger, broken);
    const saved = record.note({ faults: faultsOfBreaks(breaks, over), broken });
    // A break that a signed manifest showed stands although the log's own chain is whole.
    metrics.chainVerified(record.now().standing === undefined);
    await saved;
  };

  const run = async (): Promise<void> => {
    if (!mayRun()) return;
    try {
      const walked = await verifyOnce(options, stopping.signal);
      if (walked === undefined) return;
      await note(walked.breaks, [walked.events, 0]);
      if (walked.breaks.count === 0) logger.info({ events: walked.events }, 'event log verified');
    } catch (error) {
      // A stop ends the check of the file.
      if (stopping.signal.aborted) return;
      logger.warn({ reason: reasonOf(error) }, 'the event log could not be verified');
    }
    await options
      .checkIndexes?.(stopping.signal)
      .catch((error) =>
        logger.warn(
          { reason: reasonOf(error) },
          'the indexes of the read models could not be looked at',
        ),
      );
  };

  const schedule = (waitMs: number): void => {
    if (stopping.signal.aborted || everyMs === 0) return;
    cancel = startTimer(() => {
      running = running.then(run).then(() => schedule(jittered(everyMs, NARROW_JITTER)));
    }, waitMs);
  };

  const look = async (): Promise<void> => {
    await record.load();
    const { lastOkMs, standing } = record.now();
    metrics.chainWas({ lastOkMs, isBroken: standing !== undefined });
  };

  const begin = async (): Promise<void> => {
    await look();
    const { lastRunMs } = record.now();
    const first = jittered(Math.min(everyMs, FIRST_MS), WIDE_JITTER);
    schedule(Math.max(first, lastRunMs + everyMs - nowMs()));
  };

  running = begin();
  store.stored.onDamage?.(() => {
    running = running.then(run);
  });
  let looking: Promise<void> = running;
  const watch = setInterval(() => {
    if (!mayRun()) looking = looking.then(look);
  }, lookMs);
  watch.unref();

  return {
    status: record.now,
    /** The result of a verification on request. */
    note: (breaks: Pick<LogBreaks, 'count' | 'named'>, over: Faults['over']): void => {
      noted = note(breaks, over);
    },
    stop: async (): Promise<void> => {
      stopping.abort();
      cancel();
      clearInterval(watch);
      await looking;
      await running;
      await noted;
      await document.close();
    },
  };
};
export type ScheduledVerification = ReturnType<typeof startVerification>;

type OpenVerification = Pick<
  VerificationOptions,
  'store' | 'readModels' | 'sealingKey' | 'keptHeads' | 'logger' | 'metrics'
> & {
  config: Pick<Config, 'mongoUrl' | 'verifyEveryMs'>;
  fileOf(name: string): string;
  projector: Pick<Projector, 'status' | 'checkIndexes'>;
};

export const openVerification = async ({
  config,
  fileOf,
  projector,
  ...options
}: OpenVerification): Promise<ScheduledVerification> => {
  const document = await openKeyDocument({ config, fileOf }, 'log-verification');
  const { checkFile } = options.store.stored;
  const kept = checkFile && (await document.load().catch(() => undefined));
  // What the file's check named takes no event, over a restart too.
  if (parseCheckRecord(kept?.text).broken) await checkFile?.(new AbortController().signal);
  return startVerification({
    ...options,
    document,
    everyMs: config.verifyEveryMs,
    checkIndexes: projector.checkIndexes,
    mayRun: () => projector.status().state !== 'standing-by',
  });
};
