/** Verifies the log and its boxes soon after the start and at an interval, and has the read models compared (gaps §28). */
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
import { breakKeyOf } from './breaks.ts';
import {
  noteVerifications,
  openCheckRecord,
  parseCheckRecord,
  type VerificationNotes,
} from './check-record.ts';
import type { AuditDeps } from './deps.ts';
import { verifyLog } from './verification.ts';

/** A start has other work, and many processes start at once. */
const FIRST_MS = 600_000;

const LOOK_MS = 30_000;

type VerificationOptions = Parameters<typeof verifyLog>[0] & {
  document: KeyDocument;
  everyMs: number;
  /** False where another process has the projector's lease, which decides who verifies. */
  mayRun(): boolean;
  verifyKeys?: AuditDeps['verifyKeys'];
  /** Of the read models; it is not waited for. */
  compare?(): void;
  logger: Logger;
  metrics: VerificationNotes['metrics'];
  startTimer?: StartTimer;
  nowMs?(): number;
  lookMs?: number;
};

/** Reads only the kept results before the first run. */
export const startVerification = (options: VerificationOptions) => {
  const { store, document, everyMs, mayRun, logger, metrics } = options;
  const { startTimer = startBackgroundTimer, nowMs = Date.now, lookMs = LOOK_MS } = options;
  const record = openCheckRecord(document, logger, nowMs);
  const noteVerification = noteVerifications({ record, logger, metrics });
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();
  let cancel = (): void => undefined;

  /** The log is verified also while the store of keys is away. */
  const keys = async (signal: AbortSignal) =>
    options.verifyKeys?.(signal).catch((error: unknown) => {
      if (!signal.aborted)
        logger.warn(
          { reason: reasonOf(error) },
          'the boxes of personal data could not be verified',
        );
      return undefined;
    });

  const run = async (): Promise<void> => {
    if (!mayRun()) return;
    try {
      const { signal } = stopping;
      const found = await resultOf(verifyLog(options, { signal, keys }));
      if (found?.breaks === undefined) return;
      const { breaks, events } = found;
      const { faults } = await noteVerification(breaks, [events, 0], found.keys?.named);
      if (faults.count === 0) logger.info({ events }, 'event log verified');
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
    metrics.logBroken.set(standing === undefined ? 0 : 1);
    metrics.chainLastOk.set(Math.floor(lastOkMs / 1000));
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
    noteVerification,
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
      await record.saved();
      await document.close();
    },
  };
};
export type ScheduledVerification = ReturnType<typeof startVerification>;

type OpenVerification = Omit<VerificationOptions, 'document' | 'everyMs'> & {
  config: Pick<Config, 'mongoUrl' | 'verifyEveryMs'>;
  fileOf(name: string): string;
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
  return startVerification({ ...options, document, everyMs: config.verifyEveryMs });
};
