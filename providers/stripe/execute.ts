/** Each request goes once; a create's confirm alone moves money. NOT_SENT: before it. DECLINED: Stripe rejects. */
import { within } from '../../shared/runtime/back-off.ts';
import {
  AT_WORK,
  type KeepOpened,
  type NotSentReason,
  type OperationQuestion,
  type ProviderOperation,
  type ProviderOutcome,
  unknown,
} from '../port.ts';
import type { SentCard } from '../transport.ts';
import { testTokenOf } from './card-tokens.ts';
import type { StripeCall, StripeResponse } from './client.ts';
import { isOfDecline } from './failure-codes.ts';
import { fence, find, isFollowUp, readResponse } from './look-up.ts';
import {
  declinedBy,
  intentOf,
  intentReference,
  isKeyTaken,
  isMissing,
  MET_FENCE,
  MISSING,
  mismatch,
  NOT_SENT,
  notSent,
  objectOf,
  type Reading,
  readOpened,
  rejectionOf,
  undecided,
  unknownBy,
} from './read.ts';
import {
  confirmIntent,
  followUpRequest,
  makePaymentMethod,
  nameVoid,
  openIntent,
} from './requests.ts';
import { paymentMethod } from './shapes.ts';

const neverSent = (reason: NotSentReason): ProviderOutcome => ({ ...NOT_SENT, reason });
const MISCONFIGURED = neverSent('misconfigured');

type Create = Extract<ProviderOperation, { kind: 'AUTHORIZE' | 'SALE' }>;
type FollowUp = Exclude<ProviderOperation, Create>;

type Execution = StripeCall & {
  testTokens: boolean;
  /** What was opened is used no more. Beside the call, and without an outcome. */
  leave(reference: string): void;
};

/** With less of its time left no money request begins: its response could not be waited for. */
const MONEY_PART_MIN = 0.2;
const isTooLate = ({ leftMs, timeoutMs }: StripeCall) => leftMs() < timeoutMs * MONEY_PART_MIN;

const endOfStep = (response: StripeResponse, card?: SentCard): ProviderOutcome => {
  // The operation id comes with another amount: only what was begun under it is known.
  if (isKeyTaken(response)) return mismatch;
  const { error } = response;
  if (!isRejected(response) || error === undefined) return notSent(response);
  return isDecline(response) ? declinedBy(error, card) : MISCONFIGURED;
};

/** By the card's bank (402) or by a code that says so: Stripe gives faults of the account codes too. */
const isDecline = ({ status, error }: StripeResponse): boolean => {
  const { code, decline_code: bank } = error ?? {};
  return status === 402 || bank != null || (code != null && isOfDecline(code));
};

/** Stripe gives no code of a token that cannot pay, and names no other parameter than it. */
const isOfMethod = ({ error }: StripeResponse): boolean => {
  const { code, param } = error ?? {};
  return code == null && [undefined, null, 'payment_method', 'confirmation_token'].includes(param);
};

const isRejected = ({ status }: StripeResponse): boolean => [400, 402, 404].includes(status);

const open = async (execution: Execution, operation: Create): Promise<string | ProviderOutcome> => {
  const response = await execution.send(openIntent(operation));
  const intent = intentOf(response);
  if (intent === undefined) return endOfStep(response);
  // A replay shows the intent as it was made.
  const isOurs =
    readOpened(intent, questionOf(operation, execution)).outcome === 'NOT_FOUND' &&
    intent.status === 'requires_payment_method';
  return isOurs ? intent.id : NOT_SENT;
};

const paymentMethodFor = async (
  execution: Execution,
  { card: secret, ...shopper }: Create,
): Promise<string | ProviderOutcome> => {
  const card = secret.reveal();
  if ('token' in card) return card.token;
  const token = execution.testTokens ? testTokenOf(card.number) : undefined;
  if (token !== undefined) return token;
  const response = await execution.send(makePaymentMethod(card, shopper));
  const made = objectOf(response, paymentMethod);
  return made?.id ?? endOfStep(response, card);
};

const questionOf = (
  operation: ProviderOperation,
  { nowMs }: StripeCall,
  reference?: string,
): OperationQuestion => {
  const requestedAt = new Date(nowMs).toISOString();
  if (!('card' in operation)) return { ...operation, reference, requestedAt };
  // The card is for the call alone.
  const { card: _, ...question } = operation;
  return { ...question, reference, requestedAt };
};

/** A create's confirm may still run: Stripe's objects decide. A follow-up's key may be taken by its fence. */
const afterKeyTaken = async (call: StripeCall, question: OperationQuestion) => {
  const found = isFollowUp(question) ? await fence(call, question) : await find(call, question);
  if (found.outcome === 'FENCED' || found.outcome === 'IMPOSSIBLE') return MET_FENCE;
  return found.outcome === 'NOT_FOUND' ? unknown(AT_WORK) : found;
};

const isUndone = (
  reading: Reading,
): reading is Extract<Reading, { outcome: 'NOT_FOUND' | 'IMPOSSIBLE' }> =>
  reading.outcome === 'NOT_FOUND' || reading.outcome === 'IMPOSSIBLE';

/** An earlier request under the same id may have acted: Stripe's objects decide. */
const afterRejection = async (
  call: StripeCall,
  response: StripeResponse,
  question: OperationQuestion,
  card?: SentCard,
): Promise<ProviderOutcome> => {
  const found = await find(call, question).catch(unknownBy);
  const isNowhere = found === MISSING && isMissing(response);
  // The opened intent does not exist: nothing was confirmed, and no card was declined.
  if (isNowhere && question.reference !== undefined) return MISCONFIGURED;
  if (!isNowhere && !isUndone(found)) return found;
  // An impossible create was fenced: its intent is canceled.
  if (found.outcome === 'IMPOSSIBLE' && question.reference !== undefined) return MET_FENCE;
  // A follow-up of a payment that is not in this account is rejected for that payment alone.
  if ((isFollowUp(question) && isMissing(response)) || isDecline(response))
    return declinedBy(response.error ?? {}, card);
  return card && 'token' in card && isOfMethod(response) ? neverSent('token_used') : MISCONFIGURED;
};

const readRejection = async (
  call: StripeCall,
  response: StripeResponse,
  question: OperationQuestion,
  card?: SentCard,
): Promise<ProviderOutcome> => {
  const { lost, status, error } = response;
  if (lost !== undefined) return lost.sent ? undecided(response) : notSent(response);
  if (isKeyTaken(response)) return afterKeyTaken(call, question);
  // The key, its permissions and the rate limit are checked before execution; a lock (lock_timeout) is not.
  if (rejectionOf(response) !== undefined) return notSent(response);
  if (status === 409 && error?.code === 'idempotency_key_in_use') return unknown(AT_WORK);
  if (!isRejected(response)) return unknown('status');
  if (error === undefined) return unknown('malformed');
  return status === 402 ? declinedBy(error, card) : afterRejection(call, response, question, card);
};

const confirm = async (
  call: StripeCall,
  operation: Create,
  reference: string,
  method: string,
): Promise<ProviderOutcome> => {
  const response = await call.send(confirmIntent(operation, reference, method));
  const question = questionOf(operation, call, reference);
  const intent = intentOf(response);
  const about = intent ?? response.error?.payment_intent;
  if (about != null && about.id !== reference) return mismatch;
  if (intent === undefined) return readRejection(call, response, question, operation.card.reveal());
  const reading = readOpened(intent, question);
  return isUndone(reading) || reading.outcome === 'DECLINED' ? mismatch : reading;
};

const isKept = (call: StripeCall, keep: Promise<void>): Promise<boolean> => {
  const late = () => new Error('not kept before the deadline');
  const kept = keep.then(() => true);
  return within(call.leftMs(), kept, late).catch(() => false);
};

const executeCreate = async (
  execution: Execution,
  operation: Create,
  opened: KeepOpened,
): Promise<ProviderOutcome> => {
  const [reference, method] = await Promise.all([
    open(execution, operation),
    paymentMethodFor(execution, operation),
  ]);
  if (typeof reference !== 'string') return reference;
  const keepAndConfirm = async (): Promise<ProviderOutcome> => {
    if (typeof method !== 'string') return method;
    if (!(await isKept(execution, opened(reference)))) return neverSent('not_opened');
    if (isTooLate(execution)) return neverSent('too_late');
    return confirm(execution, operation, reference, method);
  };
  const outcome = await keepAndConfirm();
  if (['DECLINED', 'NOT_SENT'].includes(outcome.outcome)) execution.leave(reference);
  return outcome;
};

const executeFollowUp = async (call: StripeCall, operation: FollowUp): Promise<ProviderOutcome> => {
  const reference = intentReference(operation.authorizationReference);
  if (reference === undefined) return NOT_SENT;
  const question = { ...questionOf(operation, call), kind: operation.kind };
  if (operation.kind === 'VOID') {
    const named = await call.send(nameVoid(operation.operationId, reference));
    if (intentOf(named)?.id !== reference)
      return isRejected(named) ? afterRejection(call, named, question) : notSent(named);
  }
  if (isTooLate(call)) return neverSent('too_late');
  const response = await call.send(followUpRequest(question, reference));
  if (response.status !== 200) return readRejection(call, response, question);
  const reading = readResponse(response, question, reference);
  return isUndone(reading) ? mismatch : reading;
};

export const execute = (
  execution: Execution,
  operation: ProviderOperation,
  opened: KeepOpened,
): Promise<ProviderOutcome> =>
  'card' in operation
    ? executeCreate(execution, operation, opened)
    : executeFollowUp(execution, operation);
