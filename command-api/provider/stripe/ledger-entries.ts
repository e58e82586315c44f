/** A PaymentIntent's operations are listed at the time when it was opened, a refund at its own. */
import type { LedgerEntry } from '../port.ts';
import {
  declinedBy,
  hasFailed,
  isFenced,
  isMade,
  isReleased,
  refundDeclinedBy,
  wasCharged,
} from './read.ts';
import type { PaymentIntent, RefundWithIntent } from './shapes.ts';

/** `second.kind.id.part`: the entry after which the ledger goes on. */
export type LedgerPlace = { second: number; name: string };

export const placeOf = (cursor: string | null): LedgerPlace | undefined => {
  if (cursor === null) return undefined;
  const [second = '', ...name] = cursor.split('.');
  if (!/^[0-9]{1,12}$/.test(second)) throw new Error('the cursor is none of this ledger');
  return { second: Number(second), name: name.join('.') };
};

export const secondOf = ({ cursor }: LedgerEntry): number => Number(cursor.split('.')[0]);

/** A stable sort keeps the order of Stripe's own lists within a second. */
export const inOrder = (entries: readonly LedgerEntry[]): LedgerEntry[] =>
  entries.toSorted((a, b) => secondOf(a) - secondOf(b));

export const afterPlace = (
  entries: LedgerEntry[],
  { second, name }: LedgerPlace,
): LedgerEntry[] => {
  const at = entries.findIndex(({ cursor }) => cursor === `${second}.${name}`);
  return at < 0 ? entries.filter((entry) => secondOf(entry) >= second) : entries.slice(at + 1);
};

const base = (
  { metadata, currency, created, id }: PaymentIntent | RefundWithIntent,
  part: string,
) => ({
  cursor: `${created}.${part}.${id}`,
  paymentId: metadata?.paymentId ?? '',
  currency: currency.toUpperCase(),
  providerReference: id,
});

/** Canceled since: what was declined is not left open. */
const DECLINED: readonly string[] = ['requires_payment_method', 'canceled'];

const createEntry = (intent: PaymentIntent): LedgerEntry[] => {
  const operationId = intent.metadata?.operationId;
  // Made elsewhere, by the Dashboard for one.
  if (operationId === undefined) return [];
  const kind = intent.capture_method === 'manual' ? 'AUTHORIZE' : 'SALE';
  const entry = { ...base(intent, '0'), operationId, kind, amount: intent.amount } as const;
  if (wasCharged(intent) && !isFenced(intent)) return [{ ...entry, outcome: 'APPROVED' }];
  const { last_payment_error: error, status } = intent;
  if (!DECLINED.includes(status) || error == null) return [];
  return [{ ...entry, ...declinedBy(error) }];
};

/** A capture and a void exclude each other. Made elsewhere it has the intent's id, as in the log. */
const changeEntry = (intent: PaymentIntent): LedgerEntry[] => {
  const { operationId: own, captureOperationId, voidOperationId } = intent.metadata ?? {};
  if (own === undefined || intent.capture_method !== 'manual') return [];
  const approved = { ...base(intent, '1'), outcome: 'APPROVED' } as const;
  if (intent.status === 'succeeded') {
    const amount = intent.amount_received ?? intent.amount;
    return [{ ...approved, operationId: captureOperationId ?? intent.id, kind: 'CAPTURE', amount }];
  }
  // A void that was named and never sent is not what Stripe's own cancel carried out.
  if (!isReleased(intent)) return [];
  const operationId = voidOperationId ?? (isFenced(intent) ? undefined : intent.id);
  if (operationId === undefined) return [];
  return [{ ...approved, operationId, kind: 'VOID', amount: intent.amount }];
};

export const intentEntries = (intent: PaymentIntent): LedgerEntry[] => [
  ...createEntry(intent),
  ...changeEntry(intent),
];

/** One made elsewhere has Stripe's id, as in the log, also where it failed since: it was made. */
export const refundEntry = (made: RefundWithIntent): LedgerEntry[] => {
  const { operationId: own } = made.metadata ?? {};
  const intent = typeof made.payment_intent === 'object' ? made.payment_intent : undefined;
  const { paymentId } = (own === undefined ? intent : made)?.metadata ?? {};
  if (own === undefined && paymentId === undefined) return [];
  const about = { ...base(made, '2'), paymentId: paymentId ?? '', operationId: own ?? made.id };
  const entry = { ...about, kind: 'REFUND', amount: made.amount } as const;
  if (own === undefined || isMade(made)) return [{ ...entry, outcome: 'APPROVED' }];
  return hasFailed(made) ? [{ ...entry, ...refundDeclinedBy(made) }] : [];
};
