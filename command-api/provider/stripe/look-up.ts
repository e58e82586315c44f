/**
 * What came of an operation, asked without the card and by reads that Stripe keeps consistent
 * (retrieve and list). Search is behind by up to an hour, so it only finds a lost id and decides
 * nothing.
 */
import { z } from 'zod';
import type { OperationQuestion, Unknown } from '../port.ts';
import { type StripeCall, undecided } from './call.ts';
import type { StripeResponse } from './client.ts';
import { refundsOf } from './lists.ts';
import {
  errorOf,
  intentOf,
  mismatch,
  NOT_FOUND,
  type Reading,
  readCreate,
  readFound,
  readRefund,
  unknown,
} from './read.ts';
import { getIntent, searchIntent } from './requests.ts';
import { paymentIntent, type Refund } from './shapes.ts';

const REFERENCE = /^pi_[A-Za-z0-9_]{1,60}$/;
const OPERATION_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** An id of a PaymentIntent; undefined for the reference of another provider, and for all else. */
export const intentReference = (reference: unknown): string | undefined =>
  typeof reference === 'string' && REFERENCE.test(reference) ? reference : undefined;

const found = z.object({ data: z.array(paymentIntent) });

/**
 * The PaymentIntent that an operation id opened, by search: undefined where Stripe shows none, or does
 * not search for this account (400, 403); `unknown` where it could not be asked.
 */
export const searchFor = async (
  call: StripeCall,
  operationId: string,
): Promise<string | undefined | Unknown> => {
  if (!OPERATION_ID.test(operationId)) return undefined;
  const response = await call.send(searchIntent(operationId));
  if ('sent' in response || response.status !== 200) {
    const isNone = !('sent' in response) && [400, 403, 404].includes(response.status);
    return isNone ? undefined : undecided(response);
  }
  const hits = found.safeParse(response.body).data?.data;
  if (hits === undefined) return unknown('malformed');
  const own = hits.filter(({ metadata }) => metadata?.operationId === operationId);
  return own.length > 1 ? mismatch : own[0]?.id;
};

/**
 * The PaymentIntent of the authorization that a capture, void or refund belongs to: from the log,
 * else by search, which finds what is an hour old. Undefined where Stripe shows none.
 */
export const authorizationOf = async (
  call: StripeCall,
  {
    authorizationReference,
    authorizationId = '',
  }: Pick<OperationQuestion, 'authorizationReference' | 'authorizationId'>,
): Promise<string | undefined> => {
  const known = intentReference(authorizationReference);
  if (known !== undefined) return known;
  const hit = await searchFor(call, authorizationId);
  return typeof hit === 'string' ? hit : undefined;
};

/**
 * Stripe has no object of that name in this account. It decides nothing: the payment may have been made
 * in an account that its merchant had before.
 */
export const MISSING = unknown('missing');
export const isMissing = (response: StripeResponse): boolean =>
  !('sent' in response) && response.status === 404 && errorOf(response) !== undefined;

/** What a create came to; without a kept reference the confirm was never sent. */
const findCreate = async (call: StripeCall, question: OperationQuestion): Promise<Reading> => {
  const reference = intentReference(question.reference);
  if (reference === undefined)
    return question.reference === undefined ? NOT_FOUND : unknown('reference');
  const response = await call.send(getIntent(reference));
  const intent = intentOf(response);
  if (intent === undefined) return isMissing(response) ? MISSING : undecided(response);
  return intent.id === reference ? readCreate(intent, question) : mismatch;
};

const findChange = async (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> => {
  const response = await call.send(getIntent(reference));
  const intent = intentOf(response);
  if (intent === undefined) return isMissing(response) ? MISSING : undecided(response);
  return readFound(intent, question, reference);
};

const findRefund = async (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> => {
  const isOwn = ({ metadata }: Refund) => metadata?.operationId === question.operationId;
  const read = await refundsOf(call, reference, (page) => page.some(isOwn));
  if ('outcome' in read) return read;
  const own = read.find(isOwn);
  return own === undefined ? NOT_FOUND : readRefund(own, question, reference);
};

/** What Stripe shows of an operation now. `reference` is that of the authorization's PaymentIntent. */
export const findFollowUp = (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> =>
  question.kind === 'REFUND'
    ? findRefund(call, question, reference)
    : findChange(call, question, reference);

/** What Stripe shows of an operation now. */
export const find = async (call: StripeCall, question: OperationQuestion): Promise<Reading> => {
  if (question.kind === 'AUTHORIZE' || question.kind === 'SALE') return findCreate(call, question);
  const reference = await authorizationOf(call, question);
  return reference === undefined
    ? unknown('no_reference')
    : findFollowUp(call, question, reference);
};

/** Whether an error says that the Idempotency-Key has been used for another request. */
export const isKeyTaken = (response: Parameters<typeof errorOf>[0]): boolean => {
  if ('sent' in response || response.status !== 400) return false;
  const body = idempotencyError.safeParse(response.body);
  return body.success;
};
const idempotencyError = z.object({ error: z.object({ type: z.literal('idempotency_error') }) });
