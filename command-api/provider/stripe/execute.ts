/**
 * Each request goes once. Only a create's confirm moves money: a failure before it is NOT_SENT, a
 * card or amount that Stripe rejects is DECLINED.
 */
import { within } from '../../../shared/runtime/back-off.ts';
import {
  AT_WORK,
  type Opened,
  type OperationQuestion,
  type ProviderOperation,
  type ProviderOutcome,
} from '../port.ts';
import type { SentCard } from '../transport.ts';
import { testTokenOf } from './card-tokens.ts';
import type { StripeCall, StripeResponse } from './client.ts';
import { isOfDecline } from './failure-codes.ts';
import { type FollowUpQuestion, fence, isFollowUp, readResponse, type Times } from './fence.ts';
import { find, intentReference, isKeyTaken, isMissing, MISSING } from './look-up.ts';
import {
  bodyOf,
  declinedBy,
  errorOf,
  intentOf,
  MET_FENCE,
  mismatch,
  NOT_SENT,
  notSent,
  readCreate,
  rejectionOf,
  statusOf,
  undecided,
  unknown,
} from './read.ts';
import {
  confirmIntent,
  followUpRequest,
  makePaymentMethod,
  nameVoid,
  openIntent,
} from './requests.ts';
import { paymentMethod } from './shapes.ts';

const MISCONFIGURED: ProviderOutcome = { ...NOT_SENT, reason: 'misconfigured' };
const TOKEN_USED: ProviderOutcome = { ...NOT_SENT, reason: 'token_used' };
const NOT_OPENED: ProviderOutcome = { ...NOT_SENT, reason: 'not_opened' };
const TOO_LATE: ProviderOutcome = { ...NOT_SENT, reason: 'too_late' };

type Create = Extract<ProviderOperation, { kind: 'AUTHORIZE' | 'SALE' }>;
type FollowUp = Exclude<ProviderOperation, Create>;

type Execution = Times & {
  call: StripeCall;
  testTokens: boolean;
  /** With less left no money request begins: its response could not be waited for. */
  confirmMsMin: number;
  /** What was opened is used no more. Beside the call, and without an outcome. */
  leave(reference: string): void;
};

type Step<T> = { value: T } | { end: ProviderOutcome };

const endOfStep = (response: StripeResponse, card?: SentCard): ProviderOutcome => {
  // The operation id comes with another amount: only what was begun under it is known.
  if (isKeyTaken(response)) return mismatch;
  const error = errorOf(response);
  if (!isRejected(response) || error === undefined) return notSent(response);
  return isDecline(response) ? declinedBy(error, card) : MISCONFIGURED;
};

/** By the card's bank (402) or by a code that says so: Stripe gives faults of the account codes too. */
const isDecline = (response: StripeResponse): boolean => {
  const { code, decline_code: bank } = errorOf(response) ?? {};
  return statusOf(response) === 402 || bank != null || (code != null && isOfDecline(code));
};

/** Stripe gives no code of a token that cannot pay, and names no other parameter than it. */
const isOfMethod = (response: StripeResponse): boolean => {
  const { code, param } = errorOf(response) ?? {};
  return code == null && [undefined, null, 'payment_method', 'confirmation_token'].includes(param);
};

const isRejected = (response: StripeResponse): boolean =>
  [400, 402, 404].includes(statusOf(response));

const open = async (execution: Execution, operation: Create): Promise<Step<string>> => {
  const response = await execution.call.send(openIntent(operation));
  const intent = intentOf(response);
  if (intent === undefined) return { end: endOfStep(response) };
  // A replay shows the intent as it was made.
  const isOurs =
    readCreate(intent, questionOf(operation, execution.nowMs)).outcome === 'NOT_FOUND' &&
    intent.status === 'requires_payment_method';
  return isOurs ? { value: intent.id } : { end: NOT_SENT };
};

const paymentMethodFor = async (
  execution: Execution,
  { card: secret, ...shopper }: Create,
): Promise<Step<string>> => {
  const card = secret.reveal();
  if ('token' in card) return { value: card.token };
  const token = execution.testTokens ? testTokenOf(card.number) : undefined;
  if (token !== undefined) return { value: token };
  const response = await execution.call.send(makePaymentMethod(card, shopper));
  const made = paymentMethod.safeParse(bodyOf(response)).data;
  return made === undefined ? { end: endOfStep(response, card) } : { value: made.id };
};

const questionOf = (operation: ProviderOperation, nowMs: number): OperationQuestion => {
  const { operationId, paymentId, merchantId, amount, currency, kind } = operation;
  const requestedAt = new Date(nowMs).toISOString();
  const question = { operationId, paymentId, merchantId, amount, currency, kind, requestedAt };
  if ('card' in operation) return question;
  const { authorizationId, authorizationReference } = operation;
  return { ...question, authorizationId, authorizationReference };
};

/**
 * A create's own confirm holds the key and may still run, so only Stripe's objects decide; a
 * follow-up's key may be taken by its fence.
 */
const afterKeyTaken = async (
  { call, ...times }: Execution,
  question: OperationQuestion,
): Promise<ProviderOutcome> => {
  const found = isFollowUp(question)
    ? await fence(call, question, times)
    : await find(call, question);
  if (found.outcome === 'FENCED' || found.outcome === 'IMPOSSIBLE') return MET_FENCE;
  return found.outcome === 'NOT_FOUND' ? unknown(AT_WORK) : found;
};

/** An earlier request under the same id may have acted: Stripe's objects decide. */
const afterRejection = async (
  { call }: Execution,
  response: StripeResponse,
  question: OperationQuestion,
  card?: SentCard,
): Promise<ProviderOutcome> => {
  const found = await find(call, question);
  const isNowhere = found === MISSING && isMissing(response);
  // The opened intent does not exist: nothing was confirmed, and no card was declined.
  if (isNowhere && question.reference !== undefined) return MISCONFIGURED;
  const isUndone = isNowhere || found.outcome === 'NOT_FOUND' || found.outcome === 'IMPOSSIBLE';
  if (!isUndone) return found;
  // An impossible create was fenced: its intent is canceled.
  if (found.outcome === 'IMPOSSIBLE' && question.reference !== undefined) return MET_FENCE;
  // A follow-up of a payment that is not in this account is rejected for that payment alone.
  if ((isFollowUp(question) && isMissing(response)) || isDecline(response))
    return declinedBy(errorOf(response) ?? {}, card);
  return card && 'token' in card && isOfMethod(response) ? TOKEN_USED : MISCONFIGURED;
};

const readRejection = async (
  execution: Execution,
  response: StripeResponse,
  question: OperationQuestion,
  card?: SentCard,
): Promise<ProviderOutcome> => {
  if ('sent' in response) return response.sent ? undecided(response) : notSent(response);
  if (isKeyTaken(response)) return afterKeyTaken(execution, question);
  // The key, its permissions and the rate limit are checked before execution; a lock (lock_timeout) is not.
  if (rejectionOf(response) !== undefined) return notSent(response);
  const error = errorOf(response);
  if (response.status === 409 && error?.code === 'idempotency_key_in_use') return unknown(AT_WORK);
  if (!isRejected(response)) return unknown('status');
  if (error === undefined) return unknown('malformed');
  return response.status === 402
    ? declinedBy(error, card)
    : afterRejection(execution, response, question, card);
};

const isErrorAbout = (response: StripeResponse, reference: string): boolean => {
  const about = errorOf(response)?.payment_intent?.id;
  return about === undefined || about === reference;
};

const confirm = async (
  execution: Execution,
  operation: Create,
  reference: string,
  method: string,
): Promise<ProviderOutcome> => {
  const { call, nowMs } = execution;
  const card = operation.card.reveal();
  const response = await call.send(confirmIntent(operation, reference, method));
  const question = { ...questionOf(operation, nowMs), reference };
  const intent = intentOf(response);
  if (intent !== undefined && intent.id === reference) {
    const reading = readCreate(intent, question);
    const isUndone = reading.outcome === 'NOT_FOUND' || reading.outcome === 'IMPOSSIBLE';
    return isUndone || reading.outcome === 'DECLINED' ? mismatch : reading;
  }
  if (intent !== undefined || !isErrorAbout(response, reference)) return mismatch;
  return readRejection(execution, response, question, card);
};

const isKept = (call: StripeCall, keep: Promise<void>): Promise<boolean> => {
  const late = () => new Error('not kept before the deadline');
  return within(call.leftMs(), keep, late).then(
    () => true,
    () => false,
  );
};

const executeCreate = async (
  execution: Execution,
  operation: Create,
  opened: Opened,
): Promise<ProviderOutcome> => {
  const [intent, method] = await Promise.all([
    open(execution, operation),
    paymentMethodFor(execution, operation),
  ]);
  if ('end' in intent) return intent.end;
  const keepAndConfirm = async (): Promise<ProviderOutcome> => {
    if ('end' in method) return method.end;
    if (!(await isKept(execution.call, opened(intent.value)))) return NOT_OPENED;
    if (execution.call.leftMs() < execution.confirmMsMin) return TOO_LATE;
    return confirm(execution, operation, intent.value, method.value);
  };
  const outcome = await keepAndConfirm();
  if (['DECLINED', 'NOT_SENT'].includes(outcome.outcome)) execution.leave(intent.value);
  return outcome;
};

const executeFollowUp = async (
  execution: Execution,
  operation: FollowUp,
): Promise<ProviderOutcome> => {
  const { call, nowMs } = execution;
  const reference = intentReference(operation.authorizationReference);
  if (reference === undefined) return NOT_SENT;
  const question = {
    ...questionOf(operation, nowMs),
    kind: operation.kind,
    authorizationReference: reference,
  } satisfies FollowUpQuestion;
  if (operation.kind === 'VOID') {
    const named = await call.send(nameVoid(operation.operationId, reference));
    if (intentOf(named)?.id !== reference) {
      return isRejected(named) ? afterRejection(execution, named, question) : notSent(named);
    }
  }
  if (call.leftMs() < execution.confirmMsMin) return TOO_LATE;
  const response = await call.send(followUpRequest(question, reference));
  if (statusOf(response) === 200) {
    const reading = readResponse(response, question, reference);
    return reading.outcome === 'NOT_FOUND' || reading.outcome === 'IMPOSSIBLE' ? mismatch : reading;
  }
  return readRejection(execution, response, question);
};

export const execute = (
  execution: Execution,
  operation: ProviderOperation,
  opened: Opened,
): Promise<ProviderOutcome> =>
  'card' in operation
    ? executeCreate(execution, operation, opened)
    : executeFollowUp(execution, operation);
