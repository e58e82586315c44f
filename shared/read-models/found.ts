/** What the searches for one text in its several meanings find, made into one answer. */
import type { PaymentDocument } from './port.ts';

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

/** What was found, as it is handed out. */
export const documentsOf = (found: Found[]): PaymentDocument[] =>
  found.map(({ createdAt: _, ...document }) => document);
