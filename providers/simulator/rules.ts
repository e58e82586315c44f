/** Decides AUTHORIZE and SALE by card number (gaps §13), all else by money rules. Pure. */
import { brandOf, maskCard, type TokenCard } from '../../shared/payment/card.ts';
import type { LaterResult } from '../../shared/payment/commands.ts';
import type { FailureCode, Minor } from '../../shared/payment/fields.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { passesLuhn } from '../../shared/runtime/card-numbers.ts';
import type { LedgerEntry, OperationOrder, PaymentQuestion } from '../port.ts';
import { type CardBehaviour, TEST_CARDS } from './test-cards.ts';

export type CardOperation = Extract<OperationOrder, { kind: 'AUTHORIZE' | 'SALE' }>;
type FollowUp = Exclude<OperationOrder, CardOperation>;

export type SimulatedOutcome = Pick<LedgerEntry, 'outcome' | 'providerFailureCode'> & {
  failureCode?: FailureCode;
};

export type KnownAuthorization = Pick<LedgerEntry, 'kind' | 'paymentId' | 'amount' | 'currency'> & {
  outcome: SimulatedOutcome['outcome'] | 'FENCED';
  behaviour: CardBehaviour | null;
  /** Totals of approved follow-ups, in minor units; null where there is none. */
  captured: number | null;
  voided: number | null;
  refunded: number | null;
  /** When it was captured or, not captured, carried out; null in a ledger that kept no times. */
  takenAt: string | null;
};

type NetworkCodes = { networkDeclineCode: string; networkAdviceCode?: string };

/** Visa's and Mastercard's numbers; the other declines are the provider's own. */
const NETWORK_CODES: Partial<Record<FailureCode, NetworkCodes>> = {
  CARD_DECLINED: { networkDeclineCode: '05' },
  INSUFFICIENT_FUNDS: { networkDeclineCode: '51', networkAdviceCode: '02' },
  LOST_CARD: { networkDeclineCode: '41', networkAdviceCode: '03' },
  STOLEN_CARD: { networkDeclineCode: '43', networkAdviceCode: '03' },
  EXPIRED_CARD: { networkDeclineCode: '54', networkAdviceCode: '01' },
  INCORRECT_CVV: { networkDeclineCode: 'N7' },
};

export const networkCodesOf = ({ failureCode }: { failureCode?: FailureCode | undefined }) =>
  failureCode && NETWORK_CODES[failureCode];

export const CARRIED_OUT: SimulatedOutcome = { outcome: 'APPROVED' };

const declined = (failureCode: FailureCode, providerFailureCode: string): SimulatedOutcome => {
  return { outcome: 'DECLINED', failureCode, providerFailureCode };
};
const notPermitted = (word: string) => declined('TRANSACTION_NOT_PERMITTED', word);

/** The shopper did not authenticate, or was not asked to (gaps §21). */
export const NOT_AUTHENTICATED = declined('AUTHENTICATION_REQUIRED', 'authentication_required');

const cardsByNumber = new Map(TEST_CARDS.map((card) => [card.number, card]));
const numbersByToken = new Map(TEST_CARDS.map(({ token, number }) => [token, number]));

/** No card has this number: an unknown token is declined as one. */
const NO_NUMBER = '0';

const numberOf = ({ card }: CardOperation): string => {
  const revealed = card.reveal();
  return 'number' in revealed ? revealed.number : (numbersByToken.get(revealed.token) ?? NO_NUMBER);
};

const TOKEN_EXPIRY = { expiryMonth: '12', expiryYear: '2034' };

export const cardOfToken = (token: string): TokenCard | undefined => {
  const number = numbersByToken.get(token);
  if (number === undefined) return undefined;
  const { bin, last4 } = maskCard({ number, holderName: '', ...TOKEN_EXPIRY });
  return { bin, last4, ...TOKEN_EXPIRY, brand: brandOf(number) };
};

export const behaviourOf = (operation: OperationOrder): CardBehaviour | undefined =>
  'card' in operation ? cardsByNumber.get(numberOf(operation))?.behaviour : undefined;

/** A merchant who brings the results along has had the shopper authenticated (gaps §21). */
const needsShopper = (operation: CardOperation): boolean =>
  behaviourOf(operation) === 'AUTHENTICATE' && operation.card.reveal().threeDSecure === undefined;

export const asksShopper = (operation: OperationOrder): operation is AskingShopper =>
  'card' in operation && operation.authentication !== undefined && needsShopper(operation);
export type AskingShopper = CardOperation & { authentication: { returnUrl: string } };

/** The card's date is not looked at (gaps §13). */
const decideCard = (operation: CardOperation): SimulatedOutcome => {
  const number = numberOf(operation);
  const known = cardsByNumber.get(number);
  if (needsShopper(operation)) return NOT_AUTHENTICATED;
  if (known?.behaviour === undefined && known?.failureCode !== undefined)
    return declined(known.failureCode, known.failureCode.toLowerCase());
  return number !== NO_NUMBER && passesLuhn(number)
    ? CARRIED_OUT
    : declined('INVALID_CARD_NUMBER', 'invalid_card_number');
};

/** The amount captured elsewhere of an authorization, or refunded of a capture, in minor units. */
const elsewhereOf = (amount: number): Minor => minor(Math.min(100, amount));

const takenOf = ({ kind, amount, captured }: KnownAuthorization): number =>
  kind === 'SALE' ? amount : (captured ?? 0);

const decideCapture = (operation: FollowUp, authorization: KnownAuthorization) => {
  if (authorization.voided !== null) return notPermitted('already_voided');
  // A capture below the authorized amount releases the rest, so there is never a second one.
  if (takenOf(authorization) > 0) return notPermitted('already_captured');
  if (operation.amount > authorization.amount)
    return declined('LIMIT_EXCEEDED', 'over_authorized_amount');
  return authorization.behaviour === 'CAPTURE_DECLINED'
    ? declined('PROCESSING_ERROR', 'processing_error')
    : CARRIED_OUT;
};

const decideVoid = (operation: FollowUp, authorization: KnownAuthorization) => {
  if (takenOf(authorization) > 0) return notPermitted('already_captured');
  if (authorization.voided !== null) return notPermitted('already_voided');
  return operation.amount === authorization.amount ? CARRIED_OUT : notPermitted('other_amount');
};

/** Refunds that did not bounce, and what was refunded elsewhere. */
const goneBack = ({ behaviour, refunded }: KnownAuthorization, captured: number): number => {
  if (behaviour === 'REFUND_FAILS') return 0;
  return (refunded ?? 0) + (behaviour === 'REFUNDED_ELSEWHERE' ? elsewhereOf(captured) : 0);
};

const decideRefund = (operation: FollowUp, authorization: KnownAuthorization) => {
  const captured = takenOf(authorization);
  if (captured === 0) return notPermitted('nothing_captured');
  if (operation.amount > captured - goneBack(authorization, captured))
    return declined('LIMIT_EXCEEDED', 'over_captured_amount');
  return authorization.behaviour === 'REFUND_DECLINED'
    ? notPermitted('refund_not_permitted')
    : CARRIED_OUT;
};

const deciders = { CAPTURE: decideCapture, VOID: decideVoid, REFUND: decideRefund };

const withElsewhere = (authorization: KnownAuthorization): KnownAuthorization => {
  const { kind, behaviour, amount } = authorization;
  if (kind !== 'AUTHORIZE') return authorization;
  if (behaviour === 'CAPTURED_ELSEWHERE')
    return { ...authorization, captured: elsewhereOf(amount) };
  return behaviour === 'VOIDED_ELSEWHERE' ? { ...authorization, voided: amount } : authorization;
};

const decideFollowUp = (operation: FollowUp, authorization: KnownAuthorization | undefined) => {
  const reserved = authorization?.kind === 'AUTHORIZE' || authorization?.kind === 'SALE';
  if (!reserved || authorization.outcome !== 'APPROVED')
    return notPermitted('unknown_authorization');
  if (authorization.paymentId !== operation.paymentId) return notPermitted('other_payment');
  if (authorization.currency !== operation.currency) return notPermitted('other_currency');
  return deciders[operation.kind](operation, withElsewhere(authorization));
};

/** `authorizationOf` gives what the ledger has of the authorization that a follow-up names. */
export const decideOperation = (
  operation: OperationOrder,
  authorizationOf: (operationId: string) => KnownAuthorization | undefined,
): SimulatedOutcome =>
  'card' in operation
    ? decideCard(operation)
    : decideFollowUp(operation, authorizationOf(operation.authorizationId));

/** A dispute that ends by itself is open for so long. */
const DISPUTE_OPEN_MS = 300;

/** What has become of an authorization or sale by itself, at a time. */
export const laterResultsOf = (
  { authorizationId, refunds }: Pick<PaymentQuestion, 'authorizationId' | 'refunds'>,
  authorization: KnownAuthorization,
  nowMs: number,
): LaterResult[] => {
  const { kind, amount, behaviour, voided, outcome, takenAt } = authorization;
  if (outcome !== 'APPROVED') return [];
  const taken = takenOf(authorization);
  const isOpen = nowMs < Date.parse(takenAt ?? '') + DISPUTE_OPEN_MS;
  const id = authorizationId.slice(-26);
  const about = { kind: 'DISPUTE', disputeId: `dp_${id}`, amount: minor(taken) } as const;
  const dispute = (status: 'OPEN' | 'WON' | 'LOST'): LaterResult[] =>
    taken === 0 ? [] : [{ ...about, reason: 'fraudulent', status }];
  switch (behaviour) {
    case 'AUTHORIZATION_EXPIRES':
      return taken === 0 && voided === null ? [{ kind: 'AUTHORIZATION_EXPIRED' }] : [];
    case 'REFUND_FAILS':
      return refunds.map(({ operationId }) => ({
        kind: 'REFUND_FAILED',
        operationId,
        failureCode: 'PROCESSING_ERROR',
        providerFailureCode: 'refund_bounced',
      }));
    case 'REFUNDED_ELSEWHERE':
      return taken === 0
        ? []
        : [{ kind: 'REFUND_OBSERVED', refundId: `re_${id}`, amount: elsewhereOf(taken) }];
    case 'CAPTURED_ELSEWHERE':
      return kind === 'SALE'
        ? []
        : [{ kind: 'CAPTURE_OBSERVED', reference: `pi_${id}`, amount: elsewhereOf(amount) }];
    case 'VOIDED_ELSEWHERE':
      return kind === 'SALE' ? [] : [{ kind: 'VOID_OBSERVED', reference: `pi_${id}` }];
    case 'DISPUTED':
      return dispute('OPEN');
    case 'DISPUTE_WON':
      return dispute(isOpen ? 'OPEN' : 'WON');
    case 'DISPUTE_LOST':
      return dispute(isOpen ? 'OPEN' : 'LOST');
    default:
      return [];
  }
};
