/** Authorizations that ended, by Stripe's events: each is a reason to ask, never believed (ADR-0204). */
import { z } from 'zod';
import type { EndedAuthorizations } from '../port.ts';
import { type Book, eachBook, readAll, type Send } from './lists.ts';
import { undecided, unknown } from './read.ts';
import { listEnds } from './requests.ts';

/** The rest of the object is as the version that its account is set to shows it. */
const endOfAuthorization = z
  .object({
    data: z.object({
      object: z.object({
        capture_method: z.literal('manual'),
        // What this service captured has the operation's id.
        metadata: z.object({ paymentId: z.string(), captureOperationId: z.never().optional() }),
      }),
    }),
  })
  .transform(({ data }) => data.object.metadata.paymentId);

/** An event may be listed so much later than its time. */
const LISTED_LATE_MS = 300_000;
const ENDS_MAX = 1_000_000;

export const readEnded = async (
  books: readonly Book[],
  sinceMs: number,
): Promise<EndedAuthorizations> => {
  const fromSecond = Math.floor((sinceMs - LISTED_LATE_MS) / 1_000);
  const ofBook = async (send: Send, account?: string): Promise<EndedAuthorizations> => {
    const pageOf = (after: string | undefined) => listEnds(fromSecond, after);
    try {
      const paymentIds = await readAll(send, pageOf, endOfAuthorization, ENDS_MAX);
      if (paymentIds !== undefined) return { outcome: 'FOUND', paymentIds };
      return { ...unknown('too_many'), paymentIds: [] };
    } catch (error) {
      const { cause } = Object(error);
      const why = cause === undefined ? unknown('malformed') : undecided(cause);
      return { ...why, ...(account !== undefined && { account }), paymentIds: [] };
    }
  };
  const all: EndedAuthorizations[] = [];
  for await (const ofOne of eachBook(books, ofBook)) all.push(ofOne);
  const said = all.find(({ outcome }) => outcome === 'UNKNOWN') ?? { outcome: 'FOUND' };
  return { ...said, paymentIds: all.flatMap(({ paymentIds }) => paymentIds) };
};
