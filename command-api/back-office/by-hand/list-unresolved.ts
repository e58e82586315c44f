/** Those of this process, and of others as listed; a call that may still run is none (gaps §7). */
import { asUnreadable, UnreadableStream } from '../../../shared/event-store/errors.ts';
import type { ReadModelsReader } from '../../../shared/read-models/port.ts';
import type { CommandDeps } from '../../deps.ts';
import { knownOperations, type UnresolvedOperation } from '../../recovery/unresolved.ts';

type UnresolvedDeps = {
  paymentLog: Pick<CommandDeps['paymentLog'], 'load'>;
  inFlight: Pick<CommandDeps['inFlight'], 'mayRun' | 'isWaiting'>;
  unresolved: Pick<CommandDeps['unresolved'], 'list'>;
  providers: CommandDeps['providers'];
};

const LISTED_MAX = 1_000;

export const listUnresolved = async (
  deps: UnresolvedDeps,
  readModels: Pick<ReadModelsReader, 'unresolved'>,
  merchantId: string,
): Promise<UnresolvedOperation[]> => {
  const isTheirs = (one: { merchantId: string }): boolean =>
    merchantId === '*' || merchantId === one.merchantId;
  const own = deps.unresolved.list().filter(isTheirs);
  const known = new Set(own.map(({ paymentId }) => paymentId));
  // Without the read models it holds only what this process knows.
  const listed = await readModels.unresolved(LISTED_MAX).catch(() => []);
  const others: UnresolvedOperation[] = [];
  for (const one of listed) {
    if (isTheirs(one) && !known.has(one.paymentId))
      others.push(...(await readUnresolved(deps, one.paymentId)));
  }
  return [...own, ...others].sort((a, b) => (a.since < b.since ? -1 : 1)).slice(0, LISTED_MAX);
};

const readUnresolved = async (
  { paymentLog, inFlight, providers }: UnresolvedDeps,
  paymentId: string,
): Promise<UnresolvedOperation[]> => {
  const payment = await paymentLog.load(paymentId, 'store').catch(asUnreadable);
  // Unreadable, it is parked, and `payments parked list` names it.
  if (payment === undefined || payment instanceof UnreadableStream) return [];
  const known = knownOperations(payment, inFlight, providers);
  return known.map((operation) => ({ ...operation, attempts: 0, nextAttemptAt: null }));
};
