/** Merges the results of several searches, one for each meaning that the searched text can have, into a page. */
import type { PaymentDocument, PaymentSearchPage } from './port.ts';

/** A found document, with the time that results are sorted by. */
export type Found = PaymentDocument & { createdAt: string };

const newestFirst = (a: Found, b: Found): number => {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
  return a.paymentId < b.paymentId ? 1 : -1;
};

/** Each document once, by createdAt and then by id, newest first, at most `limit` of them. */
export const newestOf = (found: Found[], limit: number): Found[] => {
  const once = new Map(found.map((document) => [document.paymentId, document]));
  return [...once.values()].sort(newestFirst).slice(0, limit);
};

/** The found documents as the port returns them. */
export const documentsOf = (found: Found[]): PaymentDocument[] =>
  found.map(({ createdAt: _, ...document }) => document);

type Place = NonNullable<PaymentSearchPage['searchedTo']>;

/**
 * The page of at most `limit` found documents; one more of them shows that more are to be found.
 * `searchedTo` is the place up to which all were looked at, undefined for the end.
 */
export const pageOf = (found: Found[], limit: number, searchedTo?: Place): PaymentSearchPage => {
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  const place = last ? { createdAt: last.createdAt, paymentId: last.paymentId } : searchedTo;
  return { documents: documentsOf(page), ...(place && { searchedTo: place }) };
};
