/** What became of a payment later (gaps §15), read from Stripe's objects as they are now. */
import { z } from 'zod';
import type { LaterResult } from '../../shared/payment/commands.ts';
import type {
  KnownDispute,
  LaterResults,
  MadeElsewhere,
  NotFound,
  PaymentQuestion,
  Unknown,
} from '../port.ts';
import { cleanCode } from '../transport.ts';
import type { Send, StripeCall } from './client.ts';
import { refundEntry } from './ledger.ts';
import { type Book, eachAs, eachBook, oursAs, readAll } from './lists.ts';
import { listedRefunds, readIntent } from './look-up.ts';
import {
  hasFailed,
  intentOf,
  intentReference,
  isElsewhere,
  isExpired,
  isMade,
  isMissing,
  isReleased,
  mismatch,
  refundDeclinedBy,
  undecided,
  unknownBy,
} from './read.ts';
import { getIntent, listDisputes, listEnds, listRefunds } from './requests.ts';
import {
  dispute,
  disputeOfOurs,
  type PaymentIntent,
  type Refund,
  refundWithIntent,
  type StripeDispute,
} from './shapes.ts';

/** Seven days with the card schemes, and the hours by which Stripe may cancel late. */
export const STRIPE_AUTHORIZATION_MS_MAX = (7 * 24 + 12) * 3_600_000;
const found = (...results: LaterResult[]): LaterResults => ({ outcome: 'FOUND', results });

/** What bounced comes first, because it can be refunded again. */
const refundResults = (
  refunds: readonly Refund[],
  { refunds: ours, observed }: PaymentQuestion,
): LaterResult[] => {
  const operationOf = ({ id, metadata }: Refund): string | undefined =>
    metadata?.operationId === undefined
      ? observed.find(({ refundId }) => refundId === id)?.operationId
      : ours.find(({ operationId }) => operationId === metadata.operationId)?.operationId;
  const bounced = refunds.filter(hasFailed).flatMap((made): LaterResult[] => {
    const operationId = operationOf(made);
    const { failureCode, providerFailureCode } = refundDeclinedBy(made);
    const codes = { failureCode, providerFailureCode };
    return operationId === undefined ? [] : [{ kind: 'REFUND_FAILED', operationId, ...codes }];
  });
  const elsewhere = refunds
    .filter((made) => isElsewhere(made) && isMade(made))
    .map(({ id, amount }): LaterResult => ({ kind: 'REFUND_OBSERVED', refundId: id, amount }));
  return [...bounced, ...elsewhere.reverse()];
};

/** An inquiry (`warning_…`) and a prevented dispute take no money: they are none here. */
const DISPUTE_STATUS: Readonly<Record<string, 'OPEN' | 'WON' | 'LOST'>> = {
  needs_response: 'OPEN',
  under_review: 'OPEN',
  won: 'WON',
  lost: 'LOST',
  // The money is gone until the appeal is won.
  appeal_needs_response: 'LOST',
  appeal_under_review: 'LOST',
};

export const disputeResults = (
  one: Omit<StripeDispute, 'payment_intent'>,
): Extract<LaterResult, { kind: 'DISPUTE' }>[] => {
  const { id, amount, reason, status } = one;
  const shown = Object.hasOwn(DISPUTE_STATUS, status) ? DISPUTE_STATUS[status] : undefined;
  if (shown === undefined) return [];
  const why = cleanCode(reason) ?? 'general';
  return [{ kind: 'DISPUTE', disputeId: id, amount, reason: why, status: shown }];
};

const captureResults = ({ id, metadata, ...intent }: PaymentIntent): LaterResult[] => {
  if (intent.capture_method !== 'manual' || metadata?.captureOperationId !== undefined) return [];
  const amount = intent.amount_received ?? intent.amount;
  return [{ kind: 'CAPTURE_OBSERVED', reference: id, amount }];
};

const DISPUTES_MAX = 10_000;

const resultsOfCaptured = async (
  call: StripeCall,
  question: PaymentQuestion,
  intent: PaymentIntent,
): Promise<LaterResults | Unknown> => {
  const { latest_charge: latest } = intent;
  const charge = typeof latest === 'object' ? latest : undefined;
  // What bounced is not in the amount, but was known here before.
  const isUnrefunded =
    charge?.amount_refunded === 0 && question.refunds.length + question.observed.length === 0;
  const refunds = isUnrefunded ? [] : await listedRefunds(call, intent.id);
  const pageOf = listDisputes({ reference: intent.id });
  // A key that may not read disputes is good for a payment that Stripe says has none.
  const disputes =
    charge?.disputed === false
      ? []
      : await readAll(call.send, pageOf, eachAs(dispute), DISPUTES_MAX);
  const isOfIntent = (one: Refund | StripeDispute): boolean =>
    one.payment_intent === intent.id && one.currency.toUpperCase() === question.currency;
  if (![...refunds, ...disputes].every(isOfIntent)) return mismatch;
  return found(
    ...captureResults(intent),
    ...refundResults(refunds, question),
    ...disputes.flatMap(disputeResults),
  );
};

export const laterResults = async (
  call: StripeCall,
  question: PaymentQuestion,
): Promise<LaterResults | Unknown> => {
  const reference = intentReference(question.authorizationReference);
  if (reference === undefined) return found();
  const intent = await readIntent(call, reference);
  const isOurs =
    intent.metadata?.operationId === question.authorizationId && intent.amount === question.amount;
  if (!isOurs) return mismatch;
  if (isExpired(intent)) return found({ kind: 'AUTHORIZATION_EXPIRED' });
  if (isReleased(intent)) return found({ kind: 'VOID_OBSERVED', reference });
  return intent.status === 'succeeded' ? resultsOfCaptured(call, question, intent) : found();
};

export const paymentOfIntent = async (
  call: StripeCall,
  reference: string,
): Promise<{ outcome: 'FOUND'; paymentId: string } | NotFound | Unknown> => {
  const known = intentReference(reference);
  if (known === undefined) return { outcome: 'NOT_FOUND' };
  const response = await call.send(getIntent(known));
  if (isMissing(response)) return { outcome: 'NOT_FOUND' };
  const intent = intentOf(response);
  if (intent === undefined) return undecided(response);
  const paymentId = intent.metadata?.paymentId;
  return paymentId === undefined ? { outcome: 'NOT_FOUND' } : { outcome: 'FOUND', paymentId };
};

const YEAR_MS = 365 * 86_400_000;
const CLOCKS_MS_MAX = 60_000;

/** Throws Error where Stripe fails, or an account has more than 10,000 of the last year. */
export const readDisputes = async (
  books: readonly Book[],
  nowMs: number,
): Promise<KnownDispute[]> => {
  const secondOf = (ms: number) => Math.floor(ms / 1_000);
  const window = { from: secondOf(nowMs - YEAR_MS), to: secondOf(nowMs + CLOCKS_MS_MAX) };
  const ofBook = (send: Send) =>
    readAll(send, listDisputes(window), oursAs(disputeOfOurs), DISPUTES_MAX);
  const all: KnownDispute[] = [];
  for await (const read of eachBook(books, ofBook)) {
    for (const one of read.reverse()) {
      const { paymentId } = one.payment_intent.metadata;
      const about = { paymentId, currency: one.currency.toUpperCase() };
      all.push(...disputeResults(one).map((result) => ({ ...result, ...about })));
    }
  }
  return all;
};

/** The rest of the object is as the version that its account is set to shows it. */
const endOfAuthorization = z
  .object({
    data: z.object({
      object: z.object({
        capture_method: z.literal('manual'),
        // What this service captured has the operation's id.
        metadata: z.object({ paymentId: z.string(), captureOperationId: z.never().optional() }),
      }),
    }),
  })
  .transform(({ data }) => data.object.metadata.paymentId);

/** An event may be listed so much later than its time. */
const LISTED_LATE_MS = 300_000;
const LISTED_MAX = 1_000_000;

/** Captures and cancels by Stripe's events: each is a reason to ask, never believed (ADR-0204). */
export const readElsewhere = async (
  books: readonly Book[],
  sinceMs: number,
  nowMs: number,
): Promise<MadeElsewhere> => {
  const from = Math.floor((sinceMs - LISTED_LATE_MS) / 1_000);
  const window = { from, to: Math.floor((nowMs + CLOCKS_MS_MAX) / 1_000) };
  const ended = async (send: Send) => {
    const all = await readAll(send, listEnds(from), oursAs(endOfAuthorization), LISTED_MAX);
    return all.map((paymentId) => ({ paymentId }));
  };
  const refunded = async (send: Send) => {
    const all = await readAll(send, listRefunds(window), oursAs(refundWithIntent), LISTED_MAX);
    const entries = all.filter(isElsewhere).flatMap(refundEntry);
    return entries.map(({ paymentId, operationId: refundId }) => ({ paymentId, refundId }));
  };
  const look = (made: Promise<MadeElsewhere['made']>, account?: string): Promise<MadeElsewhere> =>
    made.then(
      (all) => ({ outcome: 'FOUND', made: all }),
      (error) => ({ ...unknownBy(error), account, made: [] }),
    );
  const looks: MadeElsewhere[] = [];
  for (const read of [ended, refunded])
    for await (const one of eachBook(books, (send, account) => look(read(send), account)))
      looks.push(one);
  const said = looks.find(({ outcome }) => outcome === 'UNKNOWN') ?? { outcome: 'FOUND' };
  return { ...said, made: looks.flatMap(({ made }) => made) };
};
