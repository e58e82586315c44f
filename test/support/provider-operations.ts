/** Operations for the provider port, each with an id that no other has. */
import type { LedgerEntry, ProviderOperation } from '../../providers/port.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import { operationId } from './payment-events.ts';

export const APPROVED_CARD = '4242424242424242';
export const CVV = '739';
/** Who holds a card, and until when. */
export const JANE = { holderName: 'Jane Doe', expiryMonth: '12', expiryYear: '2030' };
export const MERCHANT = 'm_1';

type CardOperation = Extract<ProviderOperation, { kind: 'AUTHORIZE' | 'SALE' }>;
type FollowUp = Exclude<ProviderOperation, CardOperation>;

let operations = 0;
/** An operation id that no other operation of this run has. */
export const newOperationId = (): string => {
  operations += 1;
  return `OP_${String(operations).padStart(6, '0')}`;
};

/** An authorization of 20.00 USD, or what the parts say. */
export const authorize = (
  number = APPROVED_CARD,
  parts: Partial<CardOperation> = {},
): CardOperation => ({
  operationId: newOperationId(),
  paymentId: 'pay_1',
  merchantId: MERCHANT,
  amount: 2000,
  currency: 'USD',
  kind: 'AUTHORIZE',
  card: new CardSecret({ number, ...JANE, cvv: CVV }),
  ...parts,
});

/** A capture, void or refund of all of an authorization, or what the parts say. */
export const followUp = (
  kind: FollowUp['kind'],
  { operationId, paymentId, merchantId, amount, currency }: ProviderOperation,
  parts: Partial<FollowUp> = {},
): FollowUp => ({
  operationId: newOperationId(),
  paymentId,
  merchantId,
  amount,
  currency,
  kind,
  authorizationId: operationId,
  ...parts,
});

/** Of the create that the builders of events make (payment-events.ts). */
export const ledgerEntry = (fields: Partial<LedgerEntry> = {}): LedgerEntry => ({
  cursor: '1',
  operationId: operationId(0),
  kind: 'AUTHORIZE',
  paymentId: 'pay_1',
  outcome: 'APPROVED',
  amount: 2500,
  currency: 'USD',
  providerReference: 'sim-1',
  ...fields,
});
