/** Search over the read models, newest first. Payments created later do not shift a page. */
import type { z } from 'zod';
import { cursorOf, type Place } from '../shared/http/cursor.ts';
import type { PaymentResponse } from '../shared/payment/payment-response.ts';
import { foldDamaged } from '../shared/read-models/fold-damaged.ts';
import type { PaymentDocument, PaymentSearch } from '../shared/read-models/port.ts';
import type { AuditFound } from './contract.ts';
import type { AuditDeps } from './deps.ts';
import { SEARCH_LIMIT_DEFAULT, type SearchParameters } from './parameters.ts';

const foundOf = ({ merchantId, revision, body }: PaymentDocument): AuditFound => {
  const payment = JSON.parse(body) as PaymentResponse;
  return {
    paymentId: payment.paymentId,
    merchantId,
    merchantReference: payment.merchantReference,
    status: payment.status,
    amount: payment.amount,
    capturedAmount: payment.capturedAmount,
    refundedAmount: payment.refundedAmount,
    currency: payment.currency,
    last4: payment.paymentMethod.card.last4,
    revision,
    createdAt: payment.createdAt,
    updatedAt: payment.updatedAt,
  };
};

/** `only` is the merchant of the actor. Throws ReadModelsUnavailable and StoreUnavailable. */
export const searchPage = async (
  { store, readModels }: Pick<AuditDeps, 'store' | 'readModels'>,
  requested: z.output<typeof SearchParameters>,
  only: string | undefined,
  after: Place | undefined,
) => {
  const { q, merchant, cursor: _cursor, limit = SEARCH_LIMIT_DEFAULT, ...filters } = requested;
  // The response for another merchant is the same as for a search that finds nothing.
  if (only !== undefined && merchant !== undefined && merchant !== only)
    return { payments: [], next: null };
  const search: PaymentSearch = { merchantId: only ?? merchant, text: q, ...filters, after };
  const { documents, searchedTo } = await readModels.search(search, limit);
  const payments = (await foldDamaged(store, search, documents)).map(foundOf);
  if (searchedTo === undefined) return { payments, next: null };
  return { payments, next: cursorOf(searchedTo), searchedTo: searchedTo.createdAt };
};
