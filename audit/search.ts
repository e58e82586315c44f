/**
 * Search over the read models, newest first. Payments that are created later do not shift a page.
 */
import type { z } from 'zod';
import { cursorOf, type Place } from '../shared/http/cursor.ts';
import type { PaymentResponse } from '../shared/payment/payment-response.ts';
import { foundInLog } from '../shared/read-models/found-in-log.ts';
import type { PaymentDocument, PaymentSearch } from '../shared/read-models/port.ts';
import type { AuditFound } from './contract.ts';
import type { AuditDeps } from './deps.ts';
import { SEARCH_LIMIT_DEFAULT, type SearchParameters } from './parameters.ts';

const foundOf = ({ merchantId, revision, body }: PaymentDocument): AuditFound => {
  const payment = JSON.parse(body) as PaymentResponse;
  const { paymentId, merchantReference, status, amount, capturedAmount, refundedAmount } = payment;
  const { currency, createdAt, updatedAt, paymentMethod } = payment;
  return {
    paymentId,
    merchantId,
    merchantReference,
    status,
    amount,
    capturedAmount,
    refundedAmount,
    currency,
    last4: paymentMethod.card.last4,
    revision,
    createdAt,
    updatedAt,
  };
};

type Requested = z.output<typeof SearchParameters>;

const searchOf = (
  { merchant, q: text, status, from, to, minAmount, maxAmount }: Requested,
  only: string | undefined,
  after: Place | undefined,
): PaymentSearch => ({
  merchantId: only ?? merchant,
  text,
  status,
  from,
  to,
  minAmount,
  maxAmount,
  after,
});

/**
 * `only`: the one merchant that the actor may see. Throws ReadModelsUnavailable and
 * StoreUnavailable.
 */
export const searchPage = async (
  { store, readModels }: Pick<AuditDeps, 'store' | 'readModels'>,
  requested: Requested,
  only: string | undefined,
  after: Place | undefined,
) => {
  const limit = requested.limit ?? SEARCH_LIMIT_DEFAULT;
  // The response for another merchant is the same as for a search that finds nothing.
  if (only !== undefined && requested.merchant !== undefined && requested.merchant !== only) {
    return { payments: [], next: null };
  }
  const search = searchOf(requested, only, after);
  const { documents, searchedTo } = await readModels.search(search, limit);
  const payments = (await foundInLog(store, search, documents)).map(foundOf);
  if (searchedTo === undefined) return { payments, next: null };
  return { payments, next: cursorOf(searchedTo), searchedTo: searchedTo.createdAt };
};
