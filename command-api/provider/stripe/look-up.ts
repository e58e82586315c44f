/** By consistent reads. Search is up to an hour behind: it only finds an id that an earlier log lost. */
import { z } from 'zod';
import type { OperationQuestion, Unknown } from '../port.ts';
import type { StripeCall, StripeResponse } from './client.ts';
import {
  bodyOf,
  errorOf,
  intentOf,
  mismatch,
  NOT_FOUND,
  type Reading,
  readCreate,
  readFound,
  readRefund,
  statusOf,
  undecided,
  unknown,
} from './read.ts';
import {
  getIntent,
  LIST_PAGE,
  listDisputes,
  listIntents,
  listRefunds,
  type StripeRequest,
  searchIntent,
} from './requests.ts';
import {
  type Dispute,
  dispute,
  listOf,
  type PaymentIntent,
  paymentIntent,
  type Refund,
  refund,
} from './shapes.ts';

const REFERENCE = /^pi_[A-Za-z0-9_]{1,60}$/;
const OPERATION_ID = /^[A-Za-z0-9_-]{1,64}$/;

export const intentReference = (reference: unknown): string | undefined =>
  typeof reference === 'string' && REFERENCE.test(reference) ? reference : undefined;

const found = z.object({ data: z.array(paymentIntent) });

/** Undefined where Stripe shows none, or does not search for this account (400, 403). */
export const searchFor = async (
  call: StripeCall,
  operationId: string,
): Promise<string | undefined | Unknown> => {
  if (!OPERATION_ID.test(operationId)) return undefined;
  const response = await call.send(searchIntent(operationId));
  if ([400, 403, 404].includes(statusOf(response))) return undefined;
  const hits = found.safeParse(bodyOf(response)).data?.data;
  if (hits === undefined) return undecided(response);
  const own = hits.filter(({ metadata }) => metadata?.operationId === operationId);
  return own.length > 1 ? mismatch : own[0]?.id;
};

/** Decides nothing: the payment may have been made in an account that its merchant had before. */
export const MISSING = unknown('missing');
export const isMissing = (response: StripeResponse): boolean =>
  statusOf(response) === 404 && errorOf(response) !== undefined;

/** More than one payment may have operations. */
const PAGES_MAX = Math.ceil(5_000 / LIST_PAGE) + 1;

const allOf = async <T extends { id: string }>(
  call: StripeCall,
  pageOf: (after: string | undefined) => StripeRequest,
  shape: z.ZodType<{ data: T[]; has_more: boolean }>,
  isEnough: (page: readonly T[]) => boolean = () => false,
): Promise<T[] | Unknown> => {
  const all: T[] = [];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const response = await call.send(pageOf(all.at(-1)?.id));
    const list = shape.safeParse(bodyOf(response)).data;
    if (list === undefined) return undecided(response);
    all.push(...list.data);
    if (!list.has_more || isEnough(list.data)) return all;
    if (list.data.length === 0) return unknown('malformed');
  }
  return unknown('too_many');
};

const refunds = listOf(refund);
const disputes = listOf(dispute);

export const refundsOf = (
  call: StripeCall,
  reference: string,
  isEnough?: (page: readonly Refund[]) => boolean,
): Promise<Refund[] | Unknown> =>
  allOf(call, (after) => listRefunds({ reference }, after), refunds, isEnough);

/** Of others they may have any form. */
const opened = listOf(
  z.object({ id: z.string(), metadata: z.object({ operationId: z.string().nullish() }).nullish() }),
);
const CLOCKS_S_MAX = 60;

/** The PaymentIntent that was opened for the operation while its call may have run; undefined for none. */
export const openedDuring = async (
  call: StripeCall,
  { operationId, requestedAt }: OperationQuestion,
  { timeoutMs, aheadMs }: { timeoutMs: number; aheadMs: number },
): Promise<string | undefined | Unknown> => {
  const requestedMs = Date.parse(requestedAt);
  // Our clock may have been put right since, or not.
  const window = {
    from: Math.floor((requestedMs + Math.min(0, aheadMs)) / 1_000) - CLOCKS_S_MAX,
    to: Math.ceil((requestedMs + Math.max(0, aheadMs) + timeoutMs) / 1_000) + CLOCKS_S_MAX,
  };
  const isOwn = ({ metadata }: z.infer<typeof opened>['data'][number]) =>
    metadata?.operationId === operationId;
  const pageOf = (after: string | undefined) => listIntents(window, after);
  const read = await allOf(call, pageOf, opened, (page) => page.some(isOwn));
  return 'outcome' in read ? read : read.find(isOwn)?.id;
};

export const disputesOf = (call: StripeCall, reference: string): Promise<Dispute[] | Unknown> =>
  allOf(call, (after) => listDisputes({ reference }, after), disputes);

const findIntent = async (
  call: StripeCall,
  reference: string,
  read: (intent: PaymentIntent) => Reading,
): Promise<Reading> => {
  const response = await call.send(getIntent(reference));
  const intent = intentOf(response);
  if (intent !== undefined) return intent.id === reference ? read(intent) : mismatch;
  return isMissing(response) ? MISSING : undecided(response);
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

export const findFollowUp = (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> =>
  question.kind === 'REFUND'
    ? findRefund(call, question, reference)
    : findIntent(call, reference, (intent) => readFound(intent, question, reference));

export const find = async (call: StripeCall, question: OperationQuestion): Promise<Reading> => {
  const { kind, reference: kept } = question;
  if (kind === 'AUTHORIZE' || kind === 'SALE') {
    // Without a kept reference the confirm was never sent.
    if (kept === undefined) return NOT_FOUND;
    const reference = intentReference(kept);
    if (reference === undefined) return unknown('reference');
    return findIntent(call, reference, (intent) => readCreate(intent, question));
  }
  const reference = intentReference(question.authorizationReference);
  return reference === undefined
    ? unknown('no_reference')
    : findFollowUp(call, question, reference);
};

const idempotencyError = z.object({ error: z.object({ type: z.literal('idempotency_error') }) });

export const isKeyTaken = (response: StripeResponse): boolean =>
  !('sent' in response) &&
  response.status === 400 &&
  idempotencyError.safeParse(response.body).success;
