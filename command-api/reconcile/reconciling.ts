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

const keyOf = ({ kind, operationId, paymentId }: Difference): string =>
  `${kind} ${operationId} ${paymentId}`;

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
      keys: [...differences.map(keyOf), ...(notCompared > 0 ? ['NOT_COMPARED'] : [])],
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

const logFailure = (logger: Logger, error: unknown): void => {
  const what = error instanceof LedgerUnavailable ? "the provider's ledger" : 'the event log';
  logger.warn({ err: error }, `reconciliation could not run: ${what} cannot be read now`);
};

const withDisputes = (result: Reconciliation, disputes: KnownDispute[]): Reconciliation => {
  if (disputes.length === 0) return result;
  const untold = disputes.map((dispute): Difference => {
    const { paymentId, disputeId: operationId, kind, amount, currency, status: outcome } = dispute;
    const provider = { kind, amount, currency, outcome };
    return { kind: 'MISSING_IN_LOG', operationId, paymentId, provider };
  });
  const byKind = { ...result.byKind };
  byKind.MISSING_IN_LOG += untold.length;
  return { ...result, ok: false, differences: [...result.differences, ...untold], byKind };
};

/** A removed stream leaves no event to compare, and the read models still know its payment. */
const withParked = (result: Reconciliation, parked: ParkedPayment[]): Reconciliation => {
  const known = new Set(result.unreadableEvents.map(({ paymentId }) => paymentId));
  const others = parked
    .filter(({ paymentId }) => !known.has(paymentId))
    .map(({ paymentId, revision, reason }) => ({ paymentId, position: '', revision, reason }));
  if (others.length === 0) return result;
  return {
    ...result,
    ok: false,
    unreadable: result.unreadable + others.length,
    unreadableEvents: [...result.unreadableEvents, ...others].slice(0, LISTED_MAX),
  };
};

export const openReconciling = (options: ReconcilingOptions) => {
  const { startTimer = startBackgroundTimer, everyMs, ...known } = options;
  const {
    metrics,
    logger,
    record,
    onNeverSent,
    untoldDisputes,
    askAboutUntold,
    lookForEnded,
    readModels,
    turns,
    nowMs,
    ...sides
  } = known;
  const stopping = new AbortController();
  let cancel = (): void => undefined;
  let held: Turn | undefined;
  let background: Promise<void> | undefined;

  const compare = async (part: Part | undefined): Promise<Compared> => {
    const { result, mark } = await reconcileBeside({ ...sides, part, signal: stopping.signal });
    const disputes = await untoldDisputes().catch((error: Error) => {
      throw new LedgerUnavailable(error.message, { cause: error });
    });
    // Without the read models log and ledger are compared all the same.
    const parked = await readModels.parked(LISTED_MAX).catch(() => []);
    return { result: withParked(withDisputes(result, disputes), parked), mark };
  };

  /** What no notice told is recorded, and then compared again (gaps §15). */
  const run = async (
    part: Part | undefined,
    isToNote: (result: Reconciliation) => boolean,
  ): Promise<Compared> => {
    let compared = await compare(part);
    const missing = compared.result.differences.filter(({ kind }) => kind === 'MISSING_IN_LOG');
    if (await askAboutUntold(new Set(missing.map(({ paymentId }) => paymentId))))
      compared = await compare(part);
    const { result } = compared;
    logResult(logger, result, part);
    if (isToNote(result)) {
      metrics.reconciled(result);
      await record.note(checkResultOf(result));
    }
    for (const difference of result.differences)
      if (difference.kind === 'NEVER_SENT_IN_LOG') await onNeverSent(difference);
    return compared;
  };
  /** Says nothing of the rest, so it changes no metric, and nothing in what needs a person. */
  const since = async (time: string, cursor: string): Promise<Reconciliation> =>
    (await run({ since: time, cursor }, () => false)).result;
  const once = oneRunAtATime(async () => (await run(undefined, () => true)).result);

  const foundIn = ({ byKind, unreadable, notCompared }: Reconciliation) => ({
    ranMs: nowMs(),
    found: { byKind, unreadable, notCompared },
  });

  const runWhole = async (turn: Turn): Promise<void> => {
    const atMs = nowMs();
    const { result, mark } = await run(undefined, ({ ok }) => {
      // One of what is new, under way beside it, then says nothing of the rest.
      if (!ok) void turn.keep({ mark: undefined });
      return true;
    });
    const whole = { atMs, tookMs: nowMs() - atMs };
    await turn.keep({ ...foundIn(result), whole, mark: mark && (await turn.markAt(mark)) });
  };

  const runPart = async (turn: Turn, part: NonNullable<KeptTurn['mark']>): Promise<void> => {
    const hasAgreed = () => turn.kept().mark === part;
    const { result, mark } = await run(part, hasAgreed);
    const next = mark && (await turn.markAt(mark));
    if (hasAgreed()) await turn.keep({ ...foundIn(result), mark: next ?? part });
  };

  const isWholeDue = ({ whole }: KeptTurn): boolean =>
    whole === undefined || nowMs() - whole.atMs >= wholeEveryMs(whole);

  const noteFailure = (error: unknown): void => {
    if (!stopping.signal.aborted) logFailure(logger, error);
  };

  /** One of everything may take longer than the interval: what is new is compared beside it. */
  const runInTurn = async (turn: Turn): Promise<void> => {
    await lookForEnded(turn);
    const { mark } = turn.kept();
    if (mark === undefined) return runWhole(turn);
    if (isWholeDue(turn.kept()))
      background ??= runWhole(turn)
        .catch(noteFailure)
        .finally(() => {
          background = undefined;
        });
    return runPart(turn, mark);
  };

  const takeTurn = async (): Promise<{ turn?: Turn; afterMs: number }> => {
    if (held !== undefined) return { turn: held, afterMs: everyMs };
    const { kept, turn } = await turns.take(everyMs * NARROW_JITTER.least);
    held = turn;
    if (kept.found !== undefined) metrics.reconciled(kept.found, kept.ranMs);
    const leftMs = kept.ranMs + everyMs - nowMs();
    const otherMs = leftMs > 0 ? leftMs : Math.min(everyMs, AGAIN_MS);
    return turn === undefined ? { afterMs: otherMs } : { turn, afterMs: everyMs };
  };

  /** Resolves with the time until the next one. */
  const runOnce = async (): Promise<number> => {
    const { turn, afterMs } = await takeTurn();
    if (turn === undefined) return afterMs;
    try {
      await runInTurn(turn);
      return afterMs;
    } finally {
      if (background === undefined) {
        held = undefined;
        await turn.end();
      }
    }
  };
  const onSchedule = async (): Promise<void> => {
    try {
      after(await runOnce());
    } catch (error) {
      noteFailure(error);
      after(Math.min(everyMs, AGAIN_MS));
    }
  };
  const after = (delayMs: number): void => {
    if (stopping.signal.aborted) return;
    cancel = startTimer(() => void onSchedule(), jittered(delayMs, NARROW_JITTER));
  };

  return {
    once,
    since,
    start: () => {
      metrics.reconcileScheduled(everyMs);
      if (everyMs > 0) after(Math.min(everyMs, FIRST_MS));
    },
    stop: () => {
      cancel();
      stopping.abort(new StoreUnavailable('the service is stopping'));
      void held?.end();
    },
  };
};
