/** Stripe's lists, in pages, of each account. */
import { z } from 'zod';
import type { StripeResponse } from './client.ts';
import type { StripeRequest } from './requests.ts';
import { listOf } from './shapes.ts';

export type Send = (request: StripeRequest) => Promise<StripeResponse>;
export type Book = { send: Send; name: string | undefined };

const BOOKS_AT_ONCE = 8;

const page = listOf(z.looseObject({ id: z.string(), created: z.int().min(0) }));
/** By its own metadata, or by its PaymentIntent's. */
const ofOurs = z.union([
  z.object({ metadata: z.object({ operationId: z.string() }) }),
  z.object({ payment_intent: z.object({ metadata: z.object({ paymentId: z.string() }) }) }),
]);

/** What others made may have any form. Throws ZodError where an object of ours has another. */
const readObject = <T>(shape: z.ZodType<T>, object: unknown): T[] => {
  const read = shape.safeParse(object);
  if (read.success) return [read.data];
  if (ofOurs.safeParse(object).success) throw read.error;
  return [];
};

export type Page<T> = {
  objects: T[];
  last: { id: string; created: number } | undefined;
  more: boolean;
};

const refused = (response: StripeResponse, why: string): Error =>
  new Error(`the provider's ledger: ${why}`, { cause: response });

/** Throws Error, with Stripe's response as its cause where that is no list. */
export const readPage = async <T>(
  send: Send,
  request: StripeRequest,
  shape: z.ZodType<T>,
): Promise<Page<T>> => {
  const response = await send(request);
  if ('sent' in response) {
    const { reason } = response;
    const limit = Math.floor(Number(request.params.limit) / 2);
    if (reason !== 'oversized' || limit < 1) throw refused(response, reason);
    const params = { ...request.params, limit: String(limit) };
    return readPage(send, { ...request, params }, shape);
  }
  if (response.status !== 200) throw refused(response, `status ${response.status}`);
  const { data, has_more } = page.parse(response.body);
  const objects = data.flatMap((object) => readObject(shape, object));
  return { objects, last: data.at(-1), more: has_more && data.length > 0 };
};

const readBook = async <T>(
  { send, name }: Book,
  read: (send: Send, name?: string) => Promise<T>,
): Promise<T> => {
  try {
    return await read(send, name);
  } catch (error) {
    throw name === undefined ? error : new Error(`${Object(error).message} (${name})`);
  }
};

export async function* eachBook<T>(
  books: readonly Book[],
  read: (send: Send, name?: string) => Promise<T>,
): AsyncGenerator<T> {
  for (let next = 0; next < books.length; next += BOOKS_AT_ONCE) {
    const some = books.slice(next, next + BOOKS_AT_ONCE);
    yield* await Promise.all(some.map((book) => readBook(book, read)));
  }
}

/** Objects of one window; about 5 MB. */
export const WINDOW_MAX = 500;
export const readAll = async <T>(
  send: Send,
  pageOf: (after: string | undefined) => StripeRequest,
  shape: z.ZodType<T>,
  max = WINDOW_MAX,
): Promise<T[] | undefined> => {
  const all: T[] = [];
  let after: string | undefined;
  for (;;) {
    const { objects, last, more } = await readPage(send, pageOf(after), shape);
    all.push(...objects);
    after = last?.id;
    if (!more) return all.reverse();
    if (all.length >= max) return undefined;
  }
};
