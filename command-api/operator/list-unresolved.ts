/**
 * What is unresolved, for a person: what this process follows, and beside it what the views list
 * of other processes. An operation whose call may still run is not unresolved (decisions §7).
 */
import { UnreadableStream } from '../../shared/event-store/port.ts';
import { openOperations } from '../../shared/payment/state.ts';
import type { PaymentViewsReader } from '../../shared/read-models/port.ts';
import type { CommandRoom } from '../operate.ts';
import { intentTimeOf, type UnsettledOperation } from '../recovery/recovery.ts';

/** What the list is made from, of all that commands work with. */
export type UnsettledRoom = {
  log: Pick<CommandRoom['log'], 'load'>;
  recovery: Pick<CommandRoom['recovery'], 'list' | 'mayRun'>;
};

const LISTED_MAX = 1_000;

/** Unresolved operations, the oldest first, at most 1,000; of one merchant, or of all by `*`. */
export const listUnsettled = async (
  room: UnsettledRoom,
  views: Pick<PaymentViewsReader, 'unsettled'>,
  merchantId: string,
): Promise<UnsettledOperation[]> => {
  const isTheirs = (one: { merchantId: string }): boolean =>
    merchantId === '*' || merchantId === one.merchantId;
  const own = room.recovery.list().filter(isTheirs);
  const known = new Set(own.map(({ paymentId }) => paymentId));
  // With the views out of reach it is what this process follows, which is better than nothing.
  const listed = await views.unsettled(LISTED_MAX).catch(() => []);
  const others: UnsettledOperation[] = [];
  for (const one of listed) {
    if (isTheirs(one) && !known.has(one.paymentId))
      others.push(...(await readUnsettled(room, one.paymentId)));
  }
  return [...own, ...others].sort((a, b) => (a.since < b.since ? -1 : 1)).slice(0, LISTED_MAX);
};

/** Undefined for one that cannot be read: it is parked, and `payments dead-letters list` names it. */
const readable = async ({ log }: UnsettledRoom, paymentId: string) => {
  try {
    return await log.load(paymentId, 'store');
  } catch (error) {
    if (error instanceof UnreadableStream) return undefined;
    throw error;
  }
};

const readUnsettled = async (
  room: UnsettledRoom,
  paymentId: string,
): Promise<UnsettledOperation[]> => {
  const payment = await readable(room, paymentId);
  if (payment === undefined || payment.state.status === 'NONE') return [];
  const { state } = payment;
  return openOperations(state)
    .filter((open) => !room.recovery.mayRun(payment, open))
    .map((open) => ({
      paymentId,
      merchantId: state.merchantId,
      operation: open.kind,
      operationId: open.operationId,
      amountMinor: open.amount,
      since: intentTimeOf(payment, open),
      tries: 0,
      nextTryAt: null,
    }));
};
