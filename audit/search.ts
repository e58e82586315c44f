/** Search over the read models: newest first, with a cursor that later payments do not move. */
import { z } from 'zod';
import { PAYMENT_ID } from '../shared/payment/payment-id.ts';
import type { PaymentResponse } from '../shared/payment/response.ts';
import type { PaymentDocument, PaymentSearch } from '../shared/read-models/port.ts';
import type { AuditFound, SearchParameters } from './contract.ts';
import type { AuditDeps } from './deps.ts';

const LIMIT = 50;

type After = NonNullable<PaymentSearch['after']>;

const cursorShape = z.tuple([
  z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
  z.string().regex(PAYMENT_ID),
]);

const cursorOf = ({ createdAt, paymentId }: After): string =>
  Buffer.from(JSON.stringify([createdAt, paymentId])).toString('base64url');

/** The place that a cursor stands for; undefined for a text that is none. */
export const readCursor = (cursor: string): After | undefined => {
  try {
    const [createdAt, paymentId] = cursorShape.parse(
      JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')),
    );
    return { createdAt, paymentId };
  } catch {
    return undefined;
  }
};

const foundOf = ({ merchantId, revision, body }: PaymentDocument): AuditFound => {
  const payment = JSON.parse(body) as PaymentResponse;
  const { paymentId, merchantReference, status, amount, capturedAmount, refundedAmount } = payment;
  const { currency, createdAt, updatedAt, paymentMethod } = payment;
  return {
    paymentId,
    merchantId,
    ...(merchantReference === undefined ? {} : { merchantReference }),
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

const searchOf = (requested: Requested, only: string | undefined, after: After | undefined) => {
  const { q: text, status, from, to, minAmount, maxAmount } = requested;
  const merchantId = only ?? requested.merchant;
  return {
    ...(merchantId !== undefined && { merchantId }),
    ...(text !== undefined && { text }),
    ...(status !== undefined && { status }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(minAmount !== undefined && { minAmount }),
    ...(maxAmount !== undefined && { maxAmount }),
    ...(after !== undefined && { after }),
  } satisfies PaymentSearch;
};

/** A page of the search; `only` is the one merchant that the caller may see. */
export const searchPage = async (
  { readModels }: Pick<AuditDeps, 'readModels'>,
  requested: Requested,
  only: string | undefined,
  after: After | undefined,
) => {
  const limit = requested.limit ?? LIMIT;
  // Another merchant has nothing for this caller, in the same words as an empty search.
  if (only !== undefined && requested.merchant !== undefined && requested.merchant !== only) {
    return { payments: [], next: null };
  }
  const documents = await readModels.search(searchOf(requested, only, after), limit + 1);
  const payments = documents.slice(0, limit).map(foundOf);
  const last = payments.at(-1);
  const next = documents.length > limit && last !== undefined ? cursorOf(last) : null;
  return { payments, next };
};
