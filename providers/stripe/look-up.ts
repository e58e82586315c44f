/**
 * By consistent reads; search, up to an hour behind, only finds an id that an earlier log lost. After FENCED
 * Stripe never carries it out: a create's fence is a canceled PaymentIntent, without limit; another's is its
 * taken Idempotency-Key, documented for a day, unproven against the real Stripe (docs/providers/stripe.md).
 */
import { z } from 'zod';
import { AT_WORK, type OperationQuestion, type Provider, unknown } from '../port.ts';
import type { StripeCall, StripeResponse } from './client.ts';
import { eachAs, readAll } from './lists.ts';
import {
  declinedBy,
  intentOf,
  intentReference,
  isKeyTaken,
  isMissing,
  MISSING,
  mismatch,
  NOT_FOUND,
  objectOf,
  type Reading,
  readFollowUp,
  readFound,
  readOpened,
  readRefund,
  Undecided,
  undecided,
} from './read.ts';
import {
  cancelAsFence,
  followUpRequest,
  getIntent,
  listIntents,
  listRefunds,
  nameFence,
  searchIntent,
  takeKey,
} from './requests.ts';
import { type PaymentIntent, paymentIntent, type Refund, refund } from './shapes.ts';

const OPERATION_ID = /^[A-Za-z0-9_-]{1,64}$/;
/** More than one payment may have operations. */
const LISTED_MAX = 5_000;

const found = z.object({ data: z.array(paymentIntent) });

/** Undefined where Stripe shows none, or does not search for this account (400, 403). Throws Undecided. */
const searchFor = async (call: StripeCall, operationId: string) => {
  if (!OPERATION_ID.test(operationId)) return undefined;
  const response = await call.send(searchIntent(operationId));
  if ([400, 403, 404].includes(response.status)) return undefined;
  const hits = objectOf(response, found)?.data;
  if (hits === undefined) throw new Undecided(undecided(response));
  const own = hits.filter(({ metadata }) => metadata?.operationId === operationId);
  if (own.length > 1) throw new Undecided(mismatch);
  return own[0]?.id;
};

export const listedRefunds = (
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

/** The PaymentIntent opened while the call may have run, if any. Throws Undecided, and ZodError. */
const openedDuring = async (
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

const findFollowUp = async (
  call: StripeCall,
  question: OperationQuestion,
  reference: string,
): Promise<Reading> => {
  if (question.kind !== 'REFUND') return readFound(await readIntent(call, reference), question);
  const isOwn = ({ metadata }: Refund) => metadata?.operationId === question.operationId;
  const own = (await listedRefunds(call, reference, isOwn)).find(isOwn);
  return own === undefined ? NOT_FOUND : readRefund(own, question, reference);
};

export const find = async (call: StripeCall, question: OperationQuestion): Promise<Reading> => {
  const isLater = isFollowUp(question);
  // Without a kept reference the confirm was never sent.
  if (!isLater && question.reference === undefined) return NOT_FOUND;
  const reference = intentReference(isLater ? question.authorizationReference : question.reference);
  if (reference === undefined) return unknown(isLater ? 'no_reference' : 'reference');
  return isLater
    ? findFollowUp(call, question, reference)
    : readOpened(await readIntent(call, reference), question);
};

type FenceOutcome = Awaited<ReturnType<Provider['fence']>>;

const FENCED: FenceOutcome = { outcome: 'FENCED' };
const HOUR_MS = 3_600_000;
/** Keys live for a day at least; an hour less, for the two sides' clocks. */
const KEY_AGE_MS_MAX = 23 * HOUR_MS;
/** No request lives for a day, and what Stripe repairs itself shows by then; an hour more. */
const TRACELESS_AGE_MS_MIN = 25 * HOUR_MS;

const definite = (reading: Reading): FenceOutcome | undefined => {
  if (reading.outcome === 'NOT_FOUND' || reading.outcome === 'ACTION_REQUIRED') return undefined;
  return reading.outcome === 'IMPOSSIBLE' ? FENCED : reading;
};

/** The PaymentIntent decides, not the cancel. Canceled after a decline too: a shopper could confirm again. */
const fenceCreate = async (call: StripeCall, about: OperationQuestion): Promise<FenceOutcome> => {
  // For a lost reference. A list is up to date; search, which is behind, also finds an earlier log's intent.
  const reference =
    about.reference ??
    (await openedDuring(call, about)) ??
    (await searchFor(call, about.operationId));
  if (reference === undefined) return FENCED;
  const question = { ...about, reference };
  // First, so that an approved authorization is not released.
  const before = definite(await find(call, question));
  const isConfirmable = before?.outcome === 'DECLINED' && question.waitsUntil !== undefined;
  if (before !== undefined && !isConfirmable) return before;
  // Unnamed it would read as a cancel in the Dashboard.
  const named = await call.send(nameFence(question.operationId, reference));
  if (isOurUpdate(named, question.operationId, reference))
    await call.send(cancelAsFence(reference));
  const after = definite(await find(call, question)) ?? unknown('not_canceled');
  if (after.outcome === 'FENCED') return before ?? after;
  if (after.outcome !== 'DECLINED') return after;
  const { status } = await readIntent(call, reference);
  return status === 'canceled' ? after : unknown('not_canceled');
};

/** After a decline or a failure nothing stays open. Looks first: an earlier log's call may be approved. */
export const cancelUnused = async (call: StripeCall, reference: string): Promise<object> => {
  const intent = intentOf(await call.send(getIntent(reference)));
  if (intent?.status === 'requires_payment_method') await call.send(cancelAsFence(reference));
  return {};
};

/** Stripe responds with our own update, new or replayed: a follow-up's fence holds its key. */
const isOurUpdate = (response: StripeResponse, operationId: string, reference: string): boolean => {
  const intent = intentOf(response);
  return intent?.id === reference && intent.metadata?.fencedOperationId === operationId;
};

/** The operation has the key and left no trace: its request, to the byte, is only replayed, as it ended. */
const replayed = async (
  call: StripeCall,
  question: FollowUpQuestion,
  reference: string,
): Promise<FenceOutcome> => {
  const response = await call.send(followUpRequest(question, reference));
  const { lost, headers, status, error } = response;
  if (lost !== undefined) return undecided(response);
  if (headers['idempotent-replayed'] !== 'true') return unknown('not_replayed');
  if (status === 400 || status === 402)
    return error === undefined || isKeyTaken(response) ? unknown('status') : declinedBy(error);
  return definite(readResponse(response, question, reference)) ?? mismatch;
};

export const readResponse = (
  response: StripeResponse,
  question: OperationQuestion,
  reference: string,
): Reading => {
  if (question.kind === 'REFUND') {
    const made = objectOf(response, refund);
    return made === undefined ? undecided(response) : readRefund(made, question, reference);
  }
  const intent = intentOf(response);
  if (intent === undefined) return undecided(response);
  return intent.id === reference ? readFollowUp(intent, question) : mismatch;
};

type FollowUpQuestion = OperationQuestion & { kind: 'CAPTURE' | 'VOID' | 'REFUND' };

const takeItsKey = async (
  call: StripeCall,
  question: FollowUpQuestion,
  reference: string,
): Promise<FenceOutcome> => {
  const response = await call.send(takeKey(question.operationId, reference));
  const look = async () => definite(await findFollowUp(call, question, reference));
  if (isKeyTaken(response)) return (await look()) ?? replayed(call, question, reference);
  if (response.status === 409) return unknown(AT_WORK);
  if (!isOurUpdate(response, question.operationId, reference)) return undecided(response);
  // The key is documented, not proven: a trace that appeared meanwhile says more.
  return (await look()) ?? FENCED;
};

const fenceFollowUp = async (call: StripeCall, question: FollowUpQuestion) => {
  const reference = intentReference(question.authorizationReference);
  if (reference === undefined) return unknown('no_reference');
  const before = definite(await findFollowUp(call, question, reference));
  if (before !== undefined) return before;
  const ageMs = call.nowMs - Date.parse(question.requestedAt);
  if (ageMs < KEY_AGE_MS_MAX) return takeItsKey(call, question, reference);
  if (ageMs < TRACELESS_AGE_MS_MIN) return unknown('key_too_old');
  // Another account shows no trace of what was done in this one.
  await readIntent(call, reference);
  return FENCED;
};

export const isFollowUp = (question: OperationQuestion): question is FollowUpQuestion =>
  question.kind !== 'AUTHORIZE' && question.kind !== 'SALE';

export const fence = (call: StripeCall, question: OperationQuestion): Promise<FenceOutcome> =>
  isFollowUp(question) ? fenceFollowUp(call, question) : fenceCreate(call, question);
