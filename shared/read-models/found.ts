/** Merges the results of several searches, one for each meaning that the searched text can have, into a page. */
import { PAGE_BYTES_MAX } from '../runtime/page-bytes.ts';
import type { PaymentDocument, PaymentSearchPage } from './port.ts';

/** A found document, with the time that results are sorted by. */
export type Found = PaymentDocument & { createdAt: string };

const newestFirst = (a: Found, b: Found): number => {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
  return a.paymentId < b.paymentId ? 1 : -1;
};

/** Found documents in the order of a page, up to the one behind its end, which shows that there are more. */
export type Gathered = { found: Found[]; bytes: number; isFull: boolean };

/** Adds a document to those of a page of at most `limit`; nothing once it is full. */
export const gather = (page: Gathered, limit: number, document: Found): void => {
  if (page.isFull) return;
  page.found.push(document);
  // In the place of a damaged one its stream is folded: its own text may be anything.
  page.bytes += document.damaged ? 0 : Buffer.byteLength(document.body);
  const { length } = page.found;
  page.isFull = length > limit || (length > 1 && page.bytes > PAGE_BYTES_MAX);
};

/** A page with these documents. */
export const gathered = (limit: number, documents: Iterable<Found> = []): Gathered => {
  const page: Gathered = { found: [], bytes: 0, isFull: false };
  for (const document of documents) gather(page, limit, document);
  return page;
};

/** Each document once, by createdAt and then by id, newest first, for a page of at most `limit` of them. */
export const newestOf = (found: Found[], limit: number): Gathered => {
  const once = new Map(found.map((document) => [document.paymentId, document]));
  return gathered(limit, [...once.values()].sort(newestFirst));
};

/** The found documents as the port returns them. */
export const documentsOf = (found: Found[]): PaymentDocument[] =>
  found.map(({ createdAt: _, ...document }) => document);

type Place = NonNullable<PaymentSearchPage['searchedTo']>;

/**
 * The page of at most `limit` found documents, in its order; one more of them shows that more are to be
 * found. `searchedTo` is the place up to which all were looked at, undefined for the end.
 */
export const pageOf = (found: Found[], limit: number, searchedTo?: Place): PaymentSearchPage => {
  const { found: upToNext, isFull } = gathered(limit, found);
  const page = isFull ? upToNext.slice(0, -1) : upToNext;
  const last = isFull ? page.at(-1) : undefined;
  const place = last ? { createdAt: last.createdAt, paymentId: last.paymentId } : searchedTo;
  return { documents: documentsOf(page), ...(place && { searchedTo: place }) };
};
