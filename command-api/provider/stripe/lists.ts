/** Refunds and disputes of one PaymentIntent, read page by page as Stripe lists them: newest first. */
import type { z } from 'zod';
import type { Unknown } from '../port.ts';
import { type StripeCall, undecided } from './call.ts';
import { unknown } from './read.ts';
import { LIST_PAGE, listDisputes, listRefunds, type StripeRequest } from './requests.ts';
import { type Dispute, dispute, listOf, type Refund, refund } from './shapes.ts';

/** More than one payment may have operations. */
const PAGES_MAX = Math.ceil(5_000 / LIST_PAGE) + 1;

const allOf = async <T extends { id: string }>(
  call: StripeCall,
  pageOf: (after: string | undefined) => StripeRequest,
  shape: z.ZodType<{ data: T[]; has_more: boolean }>,
  isEnough: (page: readonly T[]) => boolean,
): Promise<T[] | Unknown> => {
  const all: T[] = [];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const response = await call.send(pageOf(all.at(-1)?.id));
    if ('sent' in response || response.status !== 200) return undecided(response);
    const list = shape.safeParse(response.body).data;
    if (list === undefined) return unknown('malformed');
    all.push(...list.data);
    if (!list.has_more || isEnough(list.data)) return all;
    if (list.data.length === 0) return unknown('malformed');
  }
  return unknown('too_many');
};

const refunds = listOf(refund);
const disputes = listOf(dispute);

/** The refunds of a PaymentIntent, at least to the page that is enough. */
export const refundsOf = (
  call: StripeCall,
  reference: string,
  isEnough: (page: readonly Refund[]) => boolean = () => false,
): Promise<Refund[] | Unknown> =>
  allOf(call, (after) => listRefunds({ reference }, after), refunds, isEnough);

/** The disputes of a PaymentIntent. */
export const disputesOf = (call: StripeCall, reference: string): Promise<Dispute[] | Unknown> =>
  allOf(
    call,
    (after) => listDisputes(reference, after),
    disputes,
    () => false,
  );
