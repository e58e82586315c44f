/** Verifies the log soon after the start and at an interval, and has the read models compared (gaps §28). */

import { logIdOf } from '../shared/event-store/chain.ts';
import type { EventStore, LogReader } from '../shared/event-store/port.ts';
import { type KeyDocument, openKeyDocument } from '../shared/read-models/key-document.ts';
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
  WIDE_JITTER,
} from '../shared/runtime/back-off.ts';
import type { Config } from '../shared/runtime/config.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { resultOf } from '../shared/runtime/jobs.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { breakKeyOf, judgeBreaks, type NamedBreaks } from './breaks.ts';
import {
  type CheckResult,
  type Faults,
  openCheckRecord,
  parseCheckRecord,
  resultOfBreaks,
} from './check-record.ts';
import { type RemovalDeps, removedStreams } from './removed-streams.ts';
import type { HeadFile } from './seals/seals.ts';
import { logBreak, verifyWhole } from './verify-log.ts';

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
  /** Of the read models; it is not waited for. */
  compare?(): void;
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
  return { events: walked.events, breaks: judgeBreaks(walked.breaks, beside) };
};

/** Reads only the kept results before the first run. */
export const startVerification = (options: VerificationOptions) => {
  const { store, document, everyMs, mayRun, logger, metrics } = options;
  const { startTimer = startBackgroundTimer, nowMs = Date.now, lookMs = LOOK_MS } = options;
  const record = openCheckRecord(document, nowMs);
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let noted: Promise<unknown> = Promise.resolve();
  let cancel = (): void => undefined;

  const note = async (breaks: NamedBreaks, over: Faults['over']): Promise<CheckResult> => {
    const result = resultOfBreaks(breaks, over);
    if (result.broken !== undefined) logBreak(logger, result.broken);
    const saved = record.note(result);
    // A break that a signed manifest showed stands although the log's own chain is whole.
    metrics.chainVerified(record.now().standing === undefined);
    await saved;
    return result;
  };

  const run = async (): Promise<void> => {
    if (!mayRun()) return;
    try {
      const walked = await verifyOnce(options, stopping.signal);
      if (walked === undefined) return;
      const { faults } = await note(walked.breaks, [walked.events, 0]);
      if (faults.count === 0) logger.info({ events: walked.events }, 'event log verified');
    } catch (error) {
      // A stop ends the check of the file.
      if (stopping.signal.aborted) return;
      logger.warn({ reason: reasonOf(error) }, 'the event log could not be verified');
    }
    options.compare?.();
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
    note: async (breaks: NamedBreaks, over: Faults['over']): Promise<void> => {
      noted = note(breaks, over);
      await noted;
    },
    /** Also by another process: false for a break that the last verification did not name. */
    hasNamed: async (broken: Parameters<typeof breakKeyOf>[0]): Promise<boolean> => {
      await record.load();
      return record.now().named?.includes(breakKeyOf(broken)) ?? false;
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
  /** Compares the read models with the log. */
  compare(): void;
  /** False where another process has the projector's lease, which decides who verifies. */
  mayRun(): boolean;
};

export const openVerification = async ({
  config,
  fileOf,
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
  });
};
