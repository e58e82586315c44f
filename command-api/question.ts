/** What the provider is asked about an operation: all that the log knows of it (provider/port.ts). */
import {
  authorizationOf,
  type Operation,
  type PaymentState,
} from '../shared/payment/payment-state.ts';
import { intentTimeOf } from './in-flight.ts';
import type { LoadedPayment } from './loaded-payment.ts';
import type { OperationQuestion, ProviderOperationKind } from './provider/port.ts';

/** A capture, void or refund in the words of the provider's port. */
export const CHANGE_KINDS = { capture: 'CAPTURE', void: 'VOID', refund: 'REFUND' } as const;

const kindOf = ({ captureNow }: PaymentState, { kind }: Operation): ProviderOperationKind => {
  if (kind !== 'create') return CHANGE_KINDS[kind];
  return captureNow ? 'SALE' : 'AUTHORIZE';
};

/** The question about an operation of this payment. */
export const questionAbout = (
  { events, state }: Pick<LoadedPayment, 'events' | 'state'>,
  operation: Operation,
): OperationQuestion => {
  const { operationId, amountMinor: amount, kind, provider, reference } = operation;
  const { paymentId, merchantId, currency } = state;
  return {
    operationId,
    paymentId,
    merchantId,
    kind: kindOf(state, operation),
    amount,
    currency,
    requestedAt: intentTimeOf({ events, state }, operation),
    ...(provider !== undefined && { provider }),
    ...(reference !== undefined && { reference }),
    ...(kind !== 'create' && authorizationOf(state)),
  };
};
