/** Reconciles on request and, in one process at a time, on a schedule (`RECONCILE_INTERVAL_MS`, ADR-0263). */
import { z } from 'zod';
import type { KnownDispute } from '../../../providers/port.ts';
import { StoreUnavailable } from '../../../shared/event-store/errors.ts';
import type { KeyDocument } from '../../../shared/read-models/key-document.ts';
import type { ParkedPayment, ReadModelsReader } from '../../../shared/read-models/port.ts';
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
} from '../../../shared/runtime/back-off.ts';
import { reasonOf } from '../../../shared/runtime/error-text.ts';
import { jsonValueOf } from '../../../shared/runtime/json.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import type { Metrics } from '../../../shared/runtime/metrics.ts';
import { oneRunAtATime } from '../../../shared/runtime/scheduling.ts';
import { LISTED_MAX } from './books.ts';
import { Reconciliation, type ReconciliationPart, WINDOW_DAYS } from './contract.ts';
import type { Difference } from './differences.ts';
import {
  type BesideOptions,
  LedgerUnavailable,
  providerUnavailable,
  reconcileBeside,
} from './reconcile.ts';
import { askAgain, faultsOf, type LedgerStanding, noteFound } from './standing.ts';

const keptTurn = z.object({
  /** When the last turn began; 0: never. */
  ranMs: z.number(),
  /** Up to then what was made elsewhere was looked for. */
  lookedMs: z.number().optional(),
  /** The last comparison of the schedule. */
  compared: z.object({ atMs: z.number(), tookMs: z.number() }).optional(),
  found: Reconciliation.pick({ byKind: true, unreadable: true, notCompared: true }).optional(),
});
type KeptTurn = z.infer<typeof keptTurn>;

const ATTEMPTS_MAX = 5;

/** Whose turn it is to compare (ADR-0263): each process's without a sound document. No function throws. */
export const openTurns = (
  document: KeyDocument,
  logger: Pick<Logger, 'warn'>,
  nowMs: () => number,
) => {
  let isLogged = false;
  const load = async () => {
    const stored = await document.load().catch(() => undefined);
    const kept = keptTurn.catch({ ranMs: 0 }).parse(jsonValueOf(stored?.text ?? ''));
    return { version: stored?.version ?? 0, kept };
  };
  const save = (kept: KeptTurn, version: number): Promise<boolean> =>
    document.save(JSON.stringify(kept), version).catch((error: unknown) => {
      if (!isLogged)
        logger.warn(
          { reason: reasonOf(error) },
          'the turn of this reconciliation could not be kept: other processes reconcile as well',
        );
      isLogged = true;
      return true;
    });

  return {
    /** What was kept before, and whether this process has the turn: no process had one within `everyMs`. */
    take: async (everyMs: number): Promise<{ kept: KeptTurn; isTaken: boolean }> => {
      isLogged = false;
      const { version, kept } = await load();
      const agoMs = nowMs() - kept.ranMs;
      // A clock that was ahead holds no other process up.
      const isDone = kept.ranMs > 0 && agoMs >= 0 && agoMs < everyMs;
      return { kept, isTaken: !isDone && (await save({ ...kept, ranMs: nowMs() }, version)) };
    },
    keep: async (change: Partial<KeptTurn>): Promise<void> => {
      for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
        const { version, kept } = await load();
        if (await save({ ...kept, ...change }, version)) return;
      }
    },
  };
};

type ReconcilingOptions = Omit<BesideOptions, 'signal' | 'since'> &
  LedgerStanding & {
    everyMs: number;
    turns: ReturnType<typeof openTurns>;
    nowMs(): number;
    metrics: Pick<Metrics, 'reconciled' | 'reconcileScheduled'>;
    logger: Logger;
    /** Never throws. */
    onNeverSent: (difference: Difference) => Promise<void>;
    readModels: Pick<ReadModelsReader, 'parked'>;
    untoldDisputes: () => Promise<KnownDispute[]>;
    /** True where something is recorded now. */
    askAboutUntold: (paymentIds: ReadonlySet<string>) => Promise<boolean>;
    /** Records what was made elsewhere since the last look; the time of this one, where it found all. */
    lookElsewhere: (lastMs?: number) => Promise<number | undefined>;
    startTimer?: StartTimer;
  };

const FIRST_MS = 60_000;
const AGAIN_MS = 300_000;

const WINDOW_MS = WINDOW_DAYS * 86_400_000;
/** The schedule compares at most a hundredth of the time. */
const REST = 100;
const LOST_MS = 86_400_000;

const logResult = (logger: Logger, result: Reconciliation): void => {
  const { since, operations, entries, unreadable, notCompared, byKind } = result;
  const what = since === undefined ? '' : `: what began since ${since}`;
  const faults = faultsOf(result);
  const [places, them] = faults === 1 ? ['1 place', 'it'] : [`${faults} places`, 'them'];
  if (faults === 0)
    logger.info({ operations, entries, byKind }, `log and provider's ledger were compared${what}`);
  else
    logger.error(
      { differences: faults, byKind, unreadable, notCompared, operations, entries },
      `log and provider differ in ${places}; next: payments reconcile lists ${them}`,
    );
};

/** Adds disputes that the log has otherwise, and parked payments: a removed stream has no event to compare. */
const withOthers = (
  result: Reconciliation,
  disputes: KnownDispute[],
  parked: ParkedPayment[],
): Reconciliation => {
  const untold = disputes.map((dispute): Difference => {
    const { paymentId, disputeId: operationId, kind, amount, currency, status: outcome } = dispute;
    const provider = { kind, amount, currency, outcome };
    return { kind: 'MISSING_IN_LOG', operationId, paymentId, provider };
  });
  const known = new Set(result.unreadableEvents.map(({ paymentId }) => paymentId));
  const removed = parked
    .filter(({ paymentId }) => !known.has(paymentId))
    .map(({ paymentId, revision, reason }) => ({ paymentId, position: '', revision, reason }));
  const { ok, unreadable, unreadableEvents, differences, byKind } = result;
  return {
    ...result,
    ok: ok && untold.length + removed.length === 0,
    unreadable: unreadable + removed.length,
    unreadableEvents: [...unreadableEvents, ...removed].slice(0, LISTED_MAX),
    differences: [...differences, ...untold],
    byKind: { ...byKind, MISSING_IN_LOG: byKind.MISSING_IN_LOG + untold.length },
  };
};

type Running = ReconcilingOptions & { stopping: AbortController };

const compare = async (running: Running, since: string | undefined): Promise<Reconciliation> => {
  const { stopping, untoldDisputes, readModels } = running;
  const result = await reconcileBeside({ ...running, since, signal: stopping.signal });
  const disputes = await untoldDisputes().catch(providerUnavailable);
  // Only the read models know the payment of a removed stream; a chain over the log shows the gap itself.
  const parked = await readModels.parked(LISTED_MAX).catch((error: Error) => {
    if (running.store.stored.guarantee === 'log') return [];
    throw error;
  });
  return withOthers(result, disputes, parked);
};

/** What no notice told is recorded, and then compared again (gaps §15). */
const run = async (running: Running, since: string | undefined): Promise<Reconciliation> => {
  const first = await compare(running, since);
  // A refund that bounced has another outcome.
  const untold = first.differences.filter(
    ({ kind }) => kind === 'MISSING_IN_LOG' || kind === 'OUTCOME_DIFFERS',
  );
  const paymentIds = new Set(untold.map(({ paymentId }) => paymentId));
  const result = (await running.askAboutUntold(paymentIds)) ? await compare(running, since) : first;
  for (const difference of result.differences)
    if (difference.kind === 'NEVER_SENT_IN_LOG') await running.onNeverSent(difference);
  return result;
};

/** Of the window, or of everything: what was found is kept until it is gone. */
const compareAndNote = async (running: Running, isWhole: boolean): Promise<Reconciliation> => {
  const { nowMs, logger, metrics } = running;
  const windowStart = new Date(nowMs() - WINDOW_MS).toISOString();
  const compared = await run(running, isWhole ? undefined : windowStart);
  const result = await noteFound(running, compared);
  logResult(logger, result);
  metrics.reconciled(result);
  return result;
};

const runInTurn = async (running: Running, kept: KeptTurn): Promise<void> => {
  const { nowMs, turns, metrics, stopping } = running;
  const lookedMs = await running.lookElsewhere(kept.lookedMs);
  if (lookedMs !== undefined) await turns.keep({ lookedMs });
  const atMs = nowMs();
  const { atMs: lastMs = 0, tookMs = 0 } = kept.compared ?? {};
  // A clock that was ahead makes no comparison wait.
  if (atMs >= lastMs && atMs < lastMs + REST * tookMs) {
    await askAgain(running);
    if (kept.found !== undefined) metrics.reconciled(kept.found);
    return;
  }
  // Where this process is lost, another one compares so much later.
  await turns.keep({ compared: { atMs, tookMs: LOST_MS / REST } });
  try {
    const { byKind, unreadable, notCompared } = await compareAndNote(running, false);
    await turns.keep({ found: { byKind, unreadable, notCompared } });
  } finally {
    // One that failed took its time too.
    const compared = { atMs, tookMs: nowMs() - atMs };
    await turns.keep({ compared: stopping.signal.aborted ? kept.compared : compared });
  }
};

/** Resolves with the time until the next try. */
const runOnSchedule = async (running: Running): Promise<number> => {
  const { everyMs, turns, metrics, nowMs, stopping, logger } = running;
  const againMs = Math.min(everyMs, AGAIN_MS);
  const { kept, isTaken } = await turns.take(everyMs * NARROW_JITTER.least);
  const { found, ranMs } = kept;
  if (found !== undefined) metrics.reconciled(found, ranMs);
  const leftMs = ranMs + everyMs - nowMs();
  if (!isTaken) return leftMs > 0 ? leftMs : againMs;
  try {
    await runInTurn(running, kept);
    return everyMs;
  } catch (error) {
    const what = error instanceof LedgerUnavailable ? "the provider's ledger" : 'the event log';
    if (!stopping.signal.aborted)
      logger.warn({ err: error }, `reconciliation could not run: ${what} cannot be read now`);
    await turns.keep({ ranMs });
    return againMs;
  }
};

export const openReconciling = (options: ReconcilingOptions) => {
  const { startTimer = startBackgroundTimer, everyMs, metrics } = options;
  const stopping = new AbortController();
  const running: Running = { ...options, stopping };
  let cancel = (): void => undefined;

  const runAfter = (delayMs: number): void => {
    if (stopping.signal.aborted) return;
    const work = async () => runAfter(await runOnSchedule(running));
    cancel = startTimer(work, jittered(delayMs, NARROW_JITTER));
  };
  const window = oneRunAtATime(() => compareAndNote(running, false));
  const whole = oneRunAtATime(() => compareAndNote(running, true));

  return {
    compare: async ({ since, all }: ReconciliationPart): Promise<Reconciliation> => {
      if (since === undefined) return all === 'true' ? whole() : window();
      // It says nothing of the rest, so it changes no metric, and nothing in what needs a person.
      const result = await run(running, since);
      logResult(running.logger, result);
      return result;
    },
    start: () => {
      metrics.reconcileScheduled(everyMs);
      if (everyMs > 0) runAfter(Math.min(everyMs, FIRST_MS));
    },
    stop: () => {
      cancel();
      stopping.abort(new StoreUnavailable('the service is stopping'));
    },
  };
};
