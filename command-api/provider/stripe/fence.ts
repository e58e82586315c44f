/**
 * After FENCED, Stripe never carries the operation out. A create's fence is a canceled
 * PaymentIntent, which holds without limit. Another operation's is its Idempotency-Key, taken:
 * documented for a day, unproven against the real Stripe (docs/providers/stripe.md).
 */
import { AT_WORK, type OperationQuestion, type Provider } from '../port.ts';
import type { StripeCall, StripeResponse } from './client.ts';
import { find, findFollowUp, openedDuring, readIntent, searchFor } from './look-up.ts';
import {
  declinedBy,
  intentOf,
  intentReference,
  isKeyTaken,
  mismatch,
  objectOf,
  type Reading,
  readChange,
  readRefund,
  undecided,
  unknown,
} from './read.ts';
import { cancelAsFence, followUpRequest, getIntent, nameFence, takeKey } from './requests.ts';
import { refund } from './shapes.ts';

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

/**
 * A cancel that fails is no outcome: the PaymentIntent decides. A shopper who was asked for holds its
 * secret and could confirm it again after a decline, so it is canceled then too.
 */
const fenceCreate = async (call: StripeCall, about: OperationQuestion): Promise<FenceOutcome> => {
  // A restored log may have lost the reference. A list shows what was opened at once; search, which
  // is behind, also what an earlier log had opened under the same id.
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

/**
 * The operation itself has the key and left no trace: its request, to the byte, is only replayed,
 * which tells what became of it.
 */
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
  return intent.id === reference ? readChange(intent, question) : mismatch;
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

/** Throws Undecided, and ZodError. */
export const fence = (call: StripeCall, question: OperationQuestion): Promise<FenceOutcome> =>
  isFollowUp(question) ? fenceFollowUp(call, question) : fenceCreate(call, question);
