/** By consistent reads. Search is up to an hour behind: it only finds an id that an earlier log lost. */
import { z } from 'zod';
import type { OperationQuestion } from '../port.ts';
import type { StripeCall } from './client.ts';
import { eachAs, readAll } from './lists.ts';
import {
  intentOf,
  intentReference,
  isMissing,
  MISSING,
  mismatch,
  NOT_FOUND,
  objectOf,
  type Reading,
  readCreate,
  readFound,
  readRefund,
  Undecided,
  undecided,
  unknown,
} from './read.ts';
import { getIntent, listIntents, listRefunds, searchIntent } from './requests.ts';
import { type PaymentIntent, paymentIntent, type Refund, refund } from './shapes.ts';

const OPERATION_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** More than one payment may have operations. */
const LISTED_MAX = 5_000;

const found = z.object({ data: z.array(paymentIntent) });

/** Undefined where Stripe shows none, or does not search for this account (400, 403). Throws Undecided. */
export const searchFor = async (call: StripeCall, operationId: string) => {
  if (!OPERATION_ID.test(operationId)) return undefined;
  const response = await call.send(searchIntent(operationId));
  if ([400, 403, 404].includes(response.status)) return undefined;
  const hits = objectOf(response, found)?.data;
  if (hits === undefined) throw new Undecided(undecided(response));
  const own = hits.filter(({ metadata }) => metadata?.operationId === operationId);
  if (own.length > 1) throw new Undecided(mismatch);
  return own[0]?.id;
};

/** Throws Undecided, and ZodError. */
export const refundsOf = (
  { send }: StripeCall,
  reference: string,
  isEnough?: (made: Refund) => boolean,
): Promise<Refund[]> =>
  readAll(send, listRefunds({ reference }), eachAs(refund), LISTED_MAX, isEnough);

/** Of others they may have any form. */
const opened = z.object({
  id: z.string(),
  metadata: z.object({ operationId: z.string().nullish() }).nullish(),
});
const CLOCKS_S_MAX = 60;

/**
 * The PaymentIntent that was opened for the operation while its call may have run; undefined for none.
 * Throws Undecided, and ZodError.
 */
export const openedDuring = async (
  { send, timeoutMs, aheadMs }: StripeCall,
  { operationId, requestedAt }: OperationQuestion,
): Promise<string | undefined> => {
  const requestedMs = Date.parse(requestedAt);
  // Our clock may have been put right since, or not.
  const window = {
    from: Math.floor((requestedMs + Math.min(0, aheadMs)) / 1_000) - CLOCKS_S_MAX,
    to: Math.ceil((requestedMs + Math.max(0, aheadMs) + timeoutMs) / 1_000) + CLOCKS_S_MAX,
  };
  const isOwn = ({ metadata }: z.infer<typeof opened>) => metadata?.operationId === operationId;
  const all = await readAll(send, listIntents(window), eachAs(opened), LISTED_MAX, isOwn);
  return all.find(isOwn)?.id;
};

/** Throws Undecided where Stripe does not show this PaymentIntent. */
export const readIntent = async (call: StripeCall, reference: string): Promise<PaymentIntent> => {
  const response = await call.send(getIntent(reference));
  const intent = intentOf(response);
  if (intent?.id === reference) return intent;
  if (intent !== undefined) throw new Undecided(mismatch);
  throw new Undecided(isMissing(response) ? MISSING : undecided(response));
};

const findRefund = async (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> => {
  const isOwn = ({ metadata }: Refund) => metadata?.operationId === question.operationId;
  const own = (await refundsOf(call, reference, isOwn)).find(isOwn);
  return own === undefined ? NOT_FOUND : readRefund(own, question, reference);
};

/** Throws Undecided, and ZodError. */
export const findFollowUp = async (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> =>
  question.kind === 'REFUND'
    ? findRefund(call, question, reference)
    : readFound(await readIntent(call, reference), question);

/** Throws Undecided, and ZodError. */
export const find = async (call: StripeCall, question: OperationQuestion): Promise<Reading> => {
  const { kind, reference: kept } = question;
  if (kind === 'AUTHORIZE' || kind === 'SALE') {
    // Without a kept reference the confirm was never sent.
    if (kept === undefined) return NOT_FOUND;
    const reference = intentReference(kept);
    if (reference === undefined) return unknown('reference');
    return readCreate(await readIntent(call, reference), question);
  }
  const reference = intentReference(question.authorizationReference);
  return reference === undefined
    ? unknown('no_reference')
    : findFollowUp(call, question, reference);
};
