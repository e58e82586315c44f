/** A reconciliation as a scan of the log (shared/event-store/scan-log.ts), which calls for the pages of the ledger. */
import type { LogReader } from '../../shared/event-store/port.ts';
import { type LogScan, scanLog } from '../../shared/event-store/scan-log.ts';
import { resultOf } from '../../shared/runtime/scan.ts';
import type { LedgerPage, Provider } from '../provider/port.ts';
import {
  LedgerUnavailable,
  type ReconcileOptions,
  type Reconciliation,
  reconcile,
} from './reconcile.ts';

type Args = Pick<ReconcileOptions, 'waitingMax' | 'providers'>;

/** Compares everything. Throws what `reconcile` throws. */
export const scan: LogScan<Args, never, Reconciliation> = (store, args, { signal, call }) => {
  const ledger: Provider['ledger'] = async (after, limit) =>
    (await call('ledger', after, limit)) as LedgerPage;
  return reconcile({ ...args, store, provider: { ledger }, signal });
};

/**
 * `reconcile`, where the store can in a thread that reads the log by itself. The provider is called from
 * here. Throws as `reconcile` does.
 */
export const reconcileBeside = async ({
  store,
  provider,
  signal,
  ...args
}: ReconcileOptions & { store: LogReader }): Promise<Reconciliation> => {
  const { ledger } = provider;
  const order = { module: import.meta.url, args, calls: { ledger }, signal };
  try {
    return await resultOf(scanLog<never, Reconciliation>(store, order));
  } catch (error) {
    // What another thread throws has the name of its class, and a reason to stop is this thread's own.
    signal?.throwIfAborted();
    const { name, message } = Object(error);
    throw name === 'LedgerUnavailable' ? new LedgerUnavailable(message) : error;
  }
};
