/**
 * What is not exactly an outcome of this very operation is Unknown (provider.md); only codes go on.
 */

import { FAILURE_CODES, type FailureCode } from '../../../shared/payment/payment-events.ts';
import {
  type Approved,
  AT_WORK,
  type Declined,
  type Fenced,
  type LedgerEntry,
  type LedgerPage,
  MISMATCH,
  type NotFound,
  type OperationQuestion,
  type ProviderOutcome,
  type Unknown,
} from '../port.ts';
import { cleanCode } from '../provider-code.ts';
import type { RawResponse as TransportResponse } from '../transport.ts';
import { fencedBody, ledgerBody, type OutcomeBody, outcomeBody } from './protocol.ts';

type Sent = Pick<OperationQuestion, 'operationId' | 'amount' | 'currency'>;

export type RawResponse = Pick<TransportResponse, 'status' | 'body'>;

const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });

const isFailureCode = (code: string): code is FailureCode =>
  (FAILURE_CODES as readonly string[]).includes(code);

const declinedFrom = (body: OutcomeBody, number: string | undefined): Declined => {
  const own = cleanCode(body.providerFailureCode, number);
  const code = body.failureCode ?? '';
  if (isFailureCode(code)) {
    return { outcome: 'DECLINED', failureCode: code, providerFailureCode: own };
  }
  return {
    outcome: 'DECLINED',
    failureCode: 'UNKNOWN_DECLINE',
    providerFailureCode: own ?? cleanCode(code, number),
  };
};

const readOutcome = (
  body: unknown,
  question: Sent,
  number?: string,
): Approved | Declined | Unknown => {
  const read = outcomeBody.safeParse(body);
  if (!read.success) return unknown('malformed');
  const { operationId, amount, currency } = read.data;
  const isAboutIt =
    operationId === question.operationId &&
    amount === question.amount &&
    currency === question.currency;
  if (!isAboutIt) return unknown(MISMATCH);
  if (read.data.outcome === 'DECLINED') return declinedFrom(read.data, number);
  const providerReference = cleanCode(read.data.providerReference, number);
  return { outcome: 'APPROVED', providerReference };
};

const isFenced = (body: unknown, question: Sent): boolean => {
  const read = fencedBody.safeParse(body);
  return read.success && read.data.operationId === question.operationId;
};

/** `number` is the card number that the call carried, if any. */
export const readExecute = (
  { status, body }: RawResponse,
  question: Sent,
  number?: string,
): ProviderOutcome => {
  if (status === 200) return readOutcome(body, question, number);
  if (status === 409 && isFenced(body, question))
    return { outcome: 'NOT_SENT', byProvider: true, reason: 'fenced' };
  return unknown('status');
};

export const readLookUp = (
  { status, body }: RawResponse,
  question: Sent,
): Approved | Declined | NotFound | Unknown => {
  if (status === 200) return readOutcome(body, question);
  if (status === 404) return { outcome: 'NOT_FOUND' };
  return unknown(status === 202 ? AT_WORK : 'status');
};

export const readFence = (
  { status, body }: RawResponse,
  question: Sent,
): Approved | Declined | Fenced | Unknown => {
  if (status !== 200) return unknown(status === 202 ? AT_WORK : 'status');
  return isFenced(body, question) ? { outcome: 'FENCED' } : readOutcome(body, question);
};

const entryFrom = (
  body: ReturnType<typeof ledgerBody.parse>['operations'][number],
): LedgerEntry => {
  const { sequence, operationId, kind, paymentId, outcome, amount, currency } = body;
  const cursor = String(sequence);
  const entry = { cursor, operationId, kind, paymentId, outcome, amount, currency };
  const providerReference = cleanCode(body.providerReference) ?? '';
  return outcome === 'APPROVED'
    ? { ...entry, providerReference }
    : { ...entry, ...declinedFrom(body, undefined), outcome, providerReference };
};

/** Throws Error where the response is no page. */
export const readLedger = ({ status, body }: RawResponse): LedgerPage => {
  const read = ledgerBody.safeParse(body);
  if (status !== 200 || !read.success) throw new Error(`the provider's ledger: status ${status}`);
  const { operations, next } = read.data;
  return { entries: operations.map(entryFrom), next: next === null ? null : String(next) };
};
