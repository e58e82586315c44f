/** Pages of read models: all of them one after the other, and the one of a search by several indexes. */
import type {
  ParkedPayment,
  PaymentDocument,
  PaymentSearchPage,
  ReadModelsReader,
} from './port.ts';

export async function* documentPages(
  { idsAfter }: Pick<ReadModelsReader, 'idsAfter'>,
  size: number,
): AsyncGenerator<string[]> {
  let ids: string[] | undefined;
  do {
    ids = await idsAfter(ids?.at(-1) ?? null, size);
    yield ids;
  } while (ids.length === size);
}

export async function* parkedPayments(
  { parked }: Pick<ReadModelsReader, 'parked'>,
  size: number,
): AsyncGenerator<ParkedPayment> {
  let page = await parked(size);
  while (page.length > 0) {
    yield* page;
    page = await parked(size, page.at(-1));
  }
}

/** Of a list's page: it bounds an unread response (http/server/shares.ts). */
export const PAGE_BYTES_MAX = 262_144;

export type Found = PaymentDocument & { createdAt: string };

const newestFirst = (a: Found, b: Found): number => {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? 1 : -1;
  return a.paymentId < b.paymentId ? 1 : -1;
};

/** In the order of a page, up to the document behind its end, which shows that there are more. */
export type Gathered = { found: Found[]; bytes: number; isFull: boolean };

export const gather = (page: Gathered, limit: number, document: Found): void => {
  if (page.isFull) return;
  page.found.push(document);
  // In the place of a damaged one its stream is folded: its own text may be anything.
  page.bytes += document.damaged ? 0 : Buffer.byteLength(document.body);
  const { length } = page.found;
  page.isFull = length > limit || (length > 1 && page.bytes > PAGE_BYTES_MAX);
};

export const gathered = (limit: number, documents: Iterable<Found> = []): Gathered => {
  const page: Gathered = { found: [], bytes: 0, isFull: false };
  for (const document of documents) gather(page, limit, document);
  return page;
};

/** Each document once, newest first by createdAt and then by id. */
export const newestOf = (found: Found[], limit: number): Gathered => {
  const once = new Map(found.map((document) => [document.paymentId, document]));
  return gathered(limit, [...once.values()].sort(newestFirst));
};

export const documentsOf = (found: Found[]): PaymentDocument[] =>
  found.map(({ createdAt: _, ...document }) => document);

/** `searchedTo`: how far the search looked, undefined for all. */
export const pageOf = (
  { found, isFull }: Gathered,
  searchedTo?: PaymentSearchPage['searchedTo'],
): PaymentSearchPage => {
  const page = isFull ? found.slice(0, -1) : found;
  const last = isFull ? page.at(-1) : undefined;
  const place = last ? { createdAt: last.createdAt, paymentId: last.paymentId } : searchedTo;
  return { documents: documentsOf(page), ...(place && { searchedTo: place }) };
};
