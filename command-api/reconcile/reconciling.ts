/**
 * The reconciliations of one process: those that an auditor requests, and one on a schedule
 * (`RECONCILE_INTERVAL_MS`). One runs at a time, and each is measured and logged alike. Each command
 * process runs its own.
 */

import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { jittered, NARROW_JITTER } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Metrics } from '../../shared/runtime/metrics.ts';
import { type StartTimer, startBackgroundTimer } from '../../shared/runtime/timer.ts';
import type { Difference } from './differences.ts';
import type { ReconcileOptions } from './reconcile.ts';
import { LedgerUnavailable, type Reconciliation } from './reconcile.ts';
import { reconcileBeside } from './reconcile-scan.ts';

export type ReconcilingOptions = Pick<
  ReconcileOptions,
  'store' | 'provider' | 'providers' | 'waitingMax'
> & {
  /** 0: only when somebody requests it. */
  everyMs: number;
  metrics: Pick<Metrics, 'reconciled' | 'reconcileScheduled'>;
  logger: Logger;
  /** Called for each operation that the provider carried out and the log has as never carried out. Never throws. */
  onNeverSent: (difference: Difference) => Promise<void>;
  /** Tests set it. */
  startTimer?: StartTimer;
};

export type Reconciling = {
  /** The result of the reconciliation under way, or of a new one. Throws as `reconcile` does. */
  once(): Promise<Reconciliation>;
  /** Starts the schedule. */
  start(): void;
  /** Ends the schedule and what is under way. */
  stop(): void;
};

/** The first one comes soon after the start, so that its age says something. */
const FIRST_MS = 60_000;
/** After one that could not run: an engine or the provider is out of reach. */
const AGAIN_MS = 300_000;

/** What has to be looked at; an operation whose outcome recovery still asks for is none of it. */
const faultsOf = ({ byKind, unreadable, notCompared }: Reconciliation): number => {
  const differences = Object.values(byKind).reduce((sum, count) => sum + count, 0);
  return differences - byKind.UNRESOLVED_IN_LOG + unreadable + notCompared;
};

const logResult = (logger: Logger, result: Reconciliation): void => {
  const { operations, entries, unreadable, notCompared, byKind } = result;
  const faults = faultsOf(result);
  if (faults === 0) {
    logger.info({ operations, entries, byKind }, "log and provider's ledger were compared");
    return;
  }
  logger.error(
    { differences: faults, byKind, unreadable, notCompared, operations, entries },
    `log and provider differ in ${faults === 1 ? '1 place' : `${faults} places`}; next: payments reconcile lists ${faults === 1 ? 'it' : 'them'}`,
  );
};

const logFailure = (logger: Logger, error: unknown): void => {
  const what = error instanceof LedgerUnavailable ? "the provider's ledger" : 'the event log';
  logger.warn({ err: error }, `reconciliation could not run: ${what} cannot be read now`);
};

/** The reconciliations of this process; none runs before `once` or `start`. */
export const openReconciling = (options: ReconcilingOptions): Reconciling => {
  const { startTimer = startBackgroundTimer, ...known } = options;
  const { everyMs, metrics, logger, onNeverSent, ...sides } = known;
  const stopping = new AbortController();
  let running: Promise<Reconciliation> | undefined;
  let cancel = (): void => undefined;

  const run = async (): Promise<Reconciliation> => {
    const result = await reconcileBeside({ ...sides, signal: stopping.signal });
    metrics.reconciled(result);
    logResult(logger, result);
    for (const difference of result.differences)
      if (difference.kind === 'NEVER_SENT_IN_LOG') await onNeverSent(difference);
    return result;
  };
  const once = (): Promise<Reconciliation> => {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  };
  const onSchedule = async (): Promise<void> => {
    let nextMs = everyMs;
    try {
      await once();
    } catch (error) {
      nextMs = Math.min(everyMs, AGAIN_MS);
      if (!stopping.signal.aborted) logFailure(logger, error);
    }
    after(nextMs);
  };
  const after = (delayMs: number): void => {
    if (stopping.signal.aborted) return;
    cancel = startTimer(() => void onSchedule(), jittered(delayMs, NARROW_JITTER));
  };

  return {
    once,
    start: () => {
      metrics.reconcileScheduled(everyMs);
      if (everyMs > 0) after(Math.min(everyMs, FIRST_MS));
    },
    stop: () => {
      cancel();
      stopping.abort(new StoreUnavailable('the service is stopping'));
    },
  };
};
