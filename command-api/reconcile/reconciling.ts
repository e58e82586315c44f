/**
 * One process's reconciliations: on request, of everything, and on a schedule (`RECONCILE_INTERVAL_MS`)
 * of what is new, by one process at a time, and of everything now and then (ADR-0263).
 */
import type { CheckResult, openCheckRecord } from '../../shared/check-record.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import type { ParkedPayment, ReadModelsReader } from '../../shared/read-models/port.ts';
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
} from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { oneRunAtATime } from '../../shared/runtime/scheduling.ts';
import type { KnownDispute } from '../provider/port.ts';
import { LISTED_MAX } from './books.ts';
import type { KeptTurn, openTurns, Turn } from './checkpoint.ts';
import type { Reconciliation } from './contract.ts';
import type { Difference } from './differences.ts';
import {
  type Compared,
  LedgerUnavailable,
  type Part,
  type ReconcileOptions,
  reconcileBeside,
  unavailable,
} from './reconcile.ts';

type ReconcilingOptions = Omit<ReconcileOptions, 'signal' | 'part'> & {
  everyMs: number;
  turns: ReturnType<typeof openTurns>;
  nowMs(): number;
  metrics: Pick<Metrics, 'reconciled' | 'reconcileScheduled'>;
  logger: Logger;
  /** The result is kept there (gaps §25). */
  record: Pick<ReturnType<typeof openCheckRecord>, 'note'>;
  /** Never throws. */
  onNeverSent: (difference: Difference) => Promise<void>;
  readModels: Pick<ReadModelsReader, 'parked'>;
  /** Disputes that the log has otherwise. */
  untoldDisputes: () => Promise<KnownDispute[]>;
  /** True where something is recorded now. */
  askAboutUntold: (paymentIds: ReadonlySet<string>) => Promise<boolean>;
  /** What ended at the provider and not in the log is recorded, before it is compared. */
  lookForEnded: (turn: Turn) => Promise<void>;
  startTimer?: StartTimer;
};

/** Unreadable payments that are kept by name. */
const NAMED_MAX = 100;

const FIRST_MS = 60_000;
const AGAIN_MS = 300_000;

const DAY_MS = 86_400_000;
/** Each day as long as it takes a hundredth of it, and at least each week. */
const wholeEveryMs = ({ tookMs }: NonNullable<KeptTurn['whole']>): number =>
  Math.min(7 * DAY_MS, Math.max(DAY_MS, 100 * tookMs));

/** An operation whose outcome recovery still asks for is no fault. */
const faultsOf = ({ byKind, unreadable, notCompared }: Reconciliation): number => {
  const differences = Object.values(byKind).reduce((sum, count) => sum + count, 0);
  return differences - byKind.UNRESOLVED_IN_LOG + unreadable + notCompared;
};

const checkResultOf = (result: Reconciliation): CheckResult => {
  const { operations, entries, unreadable, unreadableEvents, notCompared } = result;
  const differences = result.differences.filter(({ kind }) => kind !== 'UNRESOLVED_IN_LOG');
  const [first] = differences;
  const count = faultsOf(result) - unreadable;
  const places = count === 1 ? '1 place' : `${count} places`;
  const where = first === undefined ? '' : `, first ${first.kind} of ${first.paymentId}`;
  return {
    faults: {
      count,
      keys: [
        ...differences.map((one) => `${one.kind} ${one.operationId} ${one.paymentId}`),
        ...(notCompared > 0 ? ['NOT_COMPARED'] : []),
      ],
      what: `Log and provider's ledger differ in ${places}${where}`,
      over: [operations, entries],
    },
    unreadable: [...new Set(unreadableEvents.map(({ paymentId }) => paymentId))].slice(
      0,
      NAMED_MAX,
    ),
  };
};

const logResult = (logger: Logger, result: Reconciliation, part: Part | undefined): void => {
  const { operations, entries, unreadable, notCompared, byKind } = result;
  const since = part !== undefined && 'since' in part ? part.since : 'they agreed';
  const what = part === undefined ? '' : `: what is new since ${since}`;
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

/**
 * With the disputes that the log has otherwise, and the parked payments: a removed stream leaves no
 * event to compare, and the read models still know its payment.
 */
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

/** The reconciliations of a process: their parts and their state. */
type Running = ReconcilingOptions & {
  stopping: AbortController;
  held: Turn | undefined;
  /** One of everything, beside those of what is new. */
  whole: Promise<void> | undefined;
};

const compare = async (running: Running, part: Part | undefined): Promise<Compared> => {
  const { stopping, untoldDisputes, readModels } = running;
  const { result, mark } = await reconcileBeside({ ...running, part, signal: stopping.signal });
  const disputes = await untoldDisputes().catch(unavailable);
  // Without the read models log and ledger are compared all the same.
  const parked = await readModels.parked(LISTED_MAX).catch(() => []);
  return { result: withOthers(result, disputes, parked), mark };
};

/** What no notice told is recorded, and then compared again (gaps §15). */
const run = async (
  running: Running,
  part: Part | undefined,
  isToNote: (result: Reconciliation) => boolean,
): Promise<Compared> => {
  const { metrics, record, onNeverSent } = running;
  let compared = await compare(running, part);
  const missing = compared.result.differences.filter(({ kind }) => kind === 'MISSING_IN_LOG');
  if (await running.askAboutUntold(new Set(missing.map(({ paymentId }) => paymentId))))
    compared = await compare(running, part);
  const { result } = compared;
  logResult(running.logger, result, part);
  if (isToNote(result)) {
    metrics.reconciled(result);
    await record.note(checkResultOf(result));
  }
  for (const difference of result.differences)
    if (difference.kind === 'NEVER_SENT_IN_LOG') await onNeverSent(difference);
  return compared;
};

const keep = (
  { nowMs }: Running,
  turn: Turn,
  { byKind, unreadable, notCompared }: Reconciliation,
  agreed: Pick<KeptTurn, 'mark' | 'whole'>,
): Promise<unknown> =>
  turn.keep({ ranMs: nowMs(), found: { byKind, unreadable, notCompared }, ...agreed });

const runWhole = async (running: Running, turn: Turn): Promise<void> => {
  const atMs = running.nowMs();
  const { result, mark } = await run(running, undefined, ({ ok }) => {
    // One of what is new, under way beside it, then says nothing of the rest.
    if (!ok) void turn.keep({ mark: undefined });
    return true;
  });
  const whole = { atMs, tookMs: running.nowMs() - atMs };
  await keep(running, turn, result, { whole, mark: mark && (await turn.markAt(mark)) });
};

const runPart = async (
  running: Running,
  turn: Turn,
  part: NonNullable<KeptTurn['mark']>,
): Promise<void> => {
  const hasAgreed = () => turn.kept().mark === part;
  const { result, mark } = await run(running, part, hasAgreed);
  const next = mark && (await turn.markAt(mark));
  if (hasAgreed()) await keep(running, turn, result, { mark: next ?? part });
};

const noteFailure = ({ stopping, logger }: Running, error: unknown): void => {
  if (stopping.signal.aborted) return;
  const what = error instanceof LedgerUnavailable ? "the provider's ledger" : 'the event log';
  logger.warn({ err: error }, `reconciliation could not run: ${what} cannot be read now`);
};

/** One of everything may take longer than the interval: what is new is compared beside it. */
const runInTurn = async (running: Running, turn: Turn): Promise<void> => {
  await running.lookForEnded(turn);
  const { mark, whole } = turn.kept();
  if (mark === undefined) return runWhole(running, turn);
  if (whole === undefined || running.nowMs() - whole.atMs >= wholeEveryMs(whole))
    running.whole ??= runWhole(running, turn)
      .catch((error) => noteFailure(running, error))
      .finally(() => {
        running.whole = undefined;
      });
  return runPart(running, turn, mark);
};

/** Resolves with the time until the next try. */
const takeTurn = async (running: Running): Promise<number> => {
  const { everyMs, turns, metrics, nowMs } = running;
  if (running.held !== undefined) return everyMs;
  const { kept, turn } = await turns.take(everyMs * NARROW_JITTER.least);
  running.held = turn;
  if (kept.found !== undefined) metrics.reconciled(kept.found, kept.ranMs);
  if (turn !== undefined) return everyMs;
  const leftMs = kept.ranMs + everyMs - nowMs();
  return leftMs > 0 ? leftMs : Math.min(everyMs, AGAIN_MS);
};

const runOnSchedule = async (running: Running): Promise<number> => {
  try {
    const afterMs = await takeTurn(running);
    if (running.held !== undefined) await runInTurn(running, running.held);
    return afterMs;
  } catch (error) {
    noteFailure(running, error);
    return Math.min(running.everyMs, AGAIN_MS);
  } finally {
    if (running.whole === undefined) {
      const { held } = running;
      running.held = undefined;
      await held?.end();
    }
  }
};

export const openReconciling = (options: ReconcilingOptions) => {
  const { startTimer = startBackgroundTimer, everyMs, metrics } = options;
  const stopping = new AbortController();
  const running: Running = { ...options, stopping, held: undefined, whole: undefined };
  let cancel = (): void => undefined;

  const runAfter = (delayMs: number): void => {
    if (stopping.signal.aborted) return;
    const work = async () => runAfter(await runOnSchedule(running));
    cancel = startTimer(work, jittered(delayMs, NARROW_JITTER));
  };

  return {
    once: oneRunAtATime(async () => (await run(running, undefined, () => true)).result),
    /** Says nothing of the rest, so it changes no metric, and nothing in what needs a person. */
    since: async (time: string, cursor: string): Promise<Reconciliation> =>
      (await run(running, { since: time, cursor }, () => false)).result,
    start: () => {
      metrics.reconcileScheduled(everyMs);
      if (everyMs > 0) runAfter(Math.min(everyMs, FIRST_MS));
    },
    stop: () => {
      cancel();
      stopping.abort(new StoreUnavailable('the service is stopping'));
      void running.held?.end();
    },
  };
};
