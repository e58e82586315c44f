/**
 * How the simulated provider decides: by card number for AUTHORIZE and SALE (gaps §13), by
 * its own money rules for the rest. Pure; the ledger hands in what it knows.
 */
import type { OperationOrder, ProviderOperationKind } from '../command-api/provider/port.ts';
import { brandOf, maskCard, type TokenCard } from '../shared/payment/card.ts';
import type { FailureCode } from '../shared/payment/payment-events.ts';
import { passesLuhn } from '../shared/runtime/card-numbers.ts';
import { type CardBehaviour, TEST_CARDS, type TestCard } from './test-cards.ts';

export type CardOperation = Extract<OperationOrder, { kind: 'AUTHORIZE' | 'SALE' }>;
export type FollowUp = Exclude<OperationOrder, CardOperation>;

export type SimulatedOutcome = {
  outcome: 'APPROVED' | 'DECLINED';
  failureCode?: FailureCode;
  /** The simulator's own word for the decline. */
  providerFailureCode?: string;
};

/** An operation that a capture, void or refund names as its authorization. */
export type Authorization = {
  kind: ProviderOperationKind;
  outcome: 'APPROVED' | 'DECLINED' | 'FENCED';
  paymentId: string;
  amount: number;
  currency: string;
  behaviour: CardBehaviour | null;
  /** Totals of approved follow-ups, in minor units; null where there is none. */
  captured: number | null;
  voided: number | null;
  refunded: number | null;
};

const APPROVED: SimulatedOutcome = { outcome: 'APPROVED' };

const declined = (failureCode: FailureCode, providerFailureCode: string): SimulatedOutcome => ({
  outcome: 'DECLINED',
  failureCode,
  providerFailureCode,
});
const notPermitted = (word: string): SimulatedOutcome =>
  declined('TRANSACTION_NOT_PERMITTED', word);

const cardsByNumber = new Map(TEST_CARDS.map((card) => [card.number, card]));
const numbersByToken = new Map(TEST_CARDS.map(({ token, number }) => [token, number]));

/** No card has this number: an unknown token is declined as one. */
const NO_NUMBER = '0';

const numberOf = ({ card }: CardOperation): string => {
  const revealed = card.reveal();
  return 'number' in revealed ? revealed.number : (numbersByToken.get(revealed.token) ?? NO_NUMBER);
};

/** The date of every token's card: the simulator judges none. */
const TOKEN_EXPIRY = { expiryMonth: '12', expiryYear: '2034' };

/** The card of one of the simulator's tokens; undefined for any other token. */
export const cardOfToken = (token: string): TokenCard | undefined => {
  const number = numbersByToken.get(token);
  if (number === undefined) return undefined;
  const { bin, last4 } = maskCard({ number, holderName: '', ...TOKEN_EXPIRY });
  return { bin, last4, ...TOKEN_EXPIRY, brand: brandOf(number) };
};

/** The table's line for a number; undefined for a number that is not in the table. */
const testCardOf = (number: string): TestCard | undefined => cardsByNumber.get(number);

/** What the card of an AUTHORIZE or SALE makes the simulator do; undefined for a card of no list. */
export const behaviourOf = (operation: OperationOrder): CardBehaviour | undefined =>
  'card' in operation ? testCardOf(numberOf(operation))?.behaviour : undefined;

/** The outcome of an AUTHORIZE or SALE. The card's date is not looked at (gaps §13). */
export const decideCard = (operation: CardOperation): SimulatedOutcome => {
  const number = numberOf(operation);
  const known = testCardOf(number);
  if (known?.behaviour === undefined && known?.failureCode !== undefined) {
    return declined(known.failureCode, known.failureCode.toLowerCase());
  }
  return number !== NO_NUMBER && passesLuhn(number)
    ? APPROVED
    : declined('INVALID_CARD_NUMBER', 'invalid_card_number');
};

/** What is refunded elsewhere of a capture, in minor units. */
export const elsewhereOf = (captured: number): number => Math.min(100, captured);

const decideCapture = (operation: FollowUp, authorization: Authorization): SimulatedOutcome => {
  if (authorization.kind === 'SALE') return notPermitted('already_captured');
  if (authorization.voided !== null) return notPermitted('already_voided');
  // A capture below the authorized amount releases the rest, so there is never a second one.
  if (authorization.captured !== null) return notPermitted('already_captured');
  if (operation.amount > authorization.amount) {
    return declined('LIMIT_EXCEEDED', 'over_authorized_amount');
  }
  return authorization.behaviour === 'CAPTURE_DECLINED'
    ? declined('PROCESSING_ERROR', 'processing_error')
    : APPROVED;
};

const decideVoid = (operation: FollowUp, authorization: Authorization): SimulatedOutcome => {
  if (authorization.kind === 'SALE') return notPermitted('already_captured');
  if (authorization.captured !== null) return notPermitted('already_captured');
  if (authorization.voided !== null) return notPermitted('already_voided');
  return operation.amount === authorization.amount ? APPROVED : notPermitted('other_amount');
};

/** What refunds have taken back: none of those that bounce, and what was refunded elsewhere. */
const goneBack = ({ behaviour, refunded }: Authorization, captured: number): number => {
  if (behaviour === 'REFUND_FAILS') return 0;
  return (refunded ?? 0) + (behaviour === 'REFUNDED_ELSEWHERE' ? elsewhereOf(captured) : 0);
};

const decideRefund = (operation: FollowUp, authorization: Authorization): SimulatedOutcome => {
  const captured =
    authorization.kind === 'SALE' ? authorization.amount : (authorization.captured ?? 0);
  if (captured === 0) return notPermitted('nothing_captured');
  if (operation.amount > captured - goneBack(authorization, captured)) {
    return declined('LIMIT_EXCEEDED', 'over_captured_amount');
  }
  return authorization.behaviour === 'REFUND_DECLINED'
    ? notPermitted('refund_not_permitted')
    : APPROVED;
};

const deciders = { CAPTURE: decideCapture, VOID: decideVoid, REFUND: decideRefund };

/** The outcome of a CAPTURE, VOID or REFUND, by what the ledger knows of its authorization. */
export const decideFollowUp = (
  operation: FollowUp,
  authorization: Authorization | undefined,
): SimulatedOutcome => {
  const reserved = authorization?.kind === 'AUTHORIZE' || authorization?.kind === 'SALE';
  if (!reserved || authorization.outcome !== 'APPROVED') {
    return notPermitted('unknown_authorization');
  }
  if (authorization.paymentId !== operation.paymentId) return notPermitted('other_payment');
  if (authorization.currency !== operation.currency) return notPermitted('other_currency');
  return deciders[operation.kind](operation, authorization);
};
