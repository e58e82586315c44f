/** Stripe's lists, newest first and in pages, of one account or of each. */
import { z } from 'zod';
import { piecesOf } from '../../shared/runtime/scheduling.ts';
import { unknown } from '../port.ts';
import type { Send } from './client.ts';
import { Undecided, undecided } from './read.ts';
import type { PageOf, StripeRequest } from './requests.ts';
import { listOf } from './shapes.ts';

export type Book = { send: Send; name: string | undefined };
/** Of one object of a list. Throws ZodError where it is one of ours in another form. */
type Read<T> = (object: unknown) => T[];
export type Page<T> = {
  objects: T[];
  last: { id: string; created: number } | undefined;
  more: boolean;
};

const page = listOf(z.looseObject({ id: z.string(), created: z.int().min(0) }));
/** By its own metadata, or by its PaymentIntent's. */
const ofOurs = z.union([
  z.object({ metadata: z.object({ operationId: z.string() }) }),
  z.object({ payment_intent: z.object({ metadata: z.object({ paymentId: z.string() }) }) }),
]);

/** What others made may have any form. */
export const oursAs =
  <T>(shape: z.ZodType<T>): Read<T> =>
  (object) => {
    const read = shape.safeParse(object);
    if (read.success) return [read.data];
    if (ofOurs.safeParse(object).success) throw read.error;
    return [];
  };
export const eachAs =
  <T>(shape: z.ZodType<T>): Read<T> =>
  (object) => [shape.parse(object)];

export const readPage = async <T>(
  send: Send,
  request: StripeRequest,
  read: Read<T>,
): Promise<Page<T>> => {
  const response = await send(request);
  const limit = Math.floor(Number(request.params.limit) / 2);
  if (response.lost?.reason === 'oversized' && limit >= 1) {
    const params = { ...request.params, limit: String(limit) };
    return readPage(send, { ...request, params }, read);
  }
  const { status, lost, body } = response;
  if (status !== 200) throw new Undecided(undecided(response), lost?.reason ?? `status ${status}`);
  const { data, has_more: more } = page.parse(body);
  if (more && data.length === 0) throw new Undecided(unknown('malformed'));
  return { objects: data.flatMap(read), last: data.at(-1), more };
};

export async function* pagesOf<T>(
  send: Send,
  pageOf: PageOf,
  read: Read<T>,
): AsyncGenerator<Page<T>> {
  let after: string | undefined;
  for (let more = true; more; ) {
    const found = await readPage(send, pageOf(after), read);
    yield found;
    ({ more } = found);
    after = found.last?.id;
  }
}

export const TOO_MANY = unknown('too_many');

/** Up to what `isEnough`. Throws Undecided, also for more than `max`, and ZodError. */
export const readAll = async <T>(
  send: Send,
  pageOf: PageOf,
  read: Read<T>,
  max: number,
  isEnough: (object: T) => boolean = () => false,
): Promise<T[]> => {
  const all: T[] = [];
  for await (const { objects, more } of pagesOf(send, pageOf, read)) {
    all.push(...objects);
    if (objects.some(isEnough)) break;
    if (more && all.length >= max) throw new Undecided(TOO_MANY);
  }
  return all;
};

const BOOKS_AT_ONCE = 8;

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
  for (const some of piecesOf(books, BOOKS_AT_ONCE))
    yield* await Promise.all(some.map((book) => readBook(book, read)));
}
