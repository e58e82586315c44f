/** Verifies a whole log in several threads at once, each of which checks the events of its share (shares.ts). */
import type { ScanOrder } from '../runtime/scan.ts';
import type { LogReader, Position } from './port.ts';
import { scanLog, scanShares } from './scan-log.ts';
import { sharesOf } from './shares.ts';
import type { LogProgress } from './verify-log.ts';
import type { SealedWalked } from './verify-scan.ts';

/** A verification whose arguments say where the log ends, and take a share. */
type VerifyOrder = ScanOrder & { args: { end: Position | null } };

/**
 * Runs the verification that is ordered, in as many threads as are worth it. Yields how far it is and
 * returns its result; undefined when it was stopped. Where a thread meets a break, the log is gone through
 * again by one, which finds every break in the order of the log, and what its seals come to. Throws
 * StoreUnavailable.
 */
export async function* verifyInShares<R extends SealedWalked>(
  store: LogReader,
  order: VerifyOrder,
  of = sharesOf(store, order.args.end),
): AsyncGenerator<LogProgress, R | undefined> {
  if (of === 1) return yield* scanLog<LogProgress, R | undefined>(store, order);
  const shares = scanShares<LogProgress, R | undefined>(store, of, (share) => ({
    ...order,
    args: { ...order.args, share },
  }));
  let step = await shares.next();
  for (; step.done !== true; step = await shares.next()) {
    const [progress] = step.value;
    if (progress !== undefined) yield progress;
  }
  const ended = step.value.filter((walked) => walked !== undefined);
  const met = ended.find(({ breaks }) => breaks.count > 0);
  if (met === undefined) return ended.length === of ? ended[0] : undefined;
  const alone = yield* scanLog<LogProgress, R | undefined>(store, order);
  // A break that is not found again was one all the same.
  return alone?.breaks.count === 0 ? { ...alone, broken: met.broken, breaks: met.breaks } : alone;
}
