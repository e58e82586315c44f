/** Reads the lists that the ledger is made of, page by page, in each of Stripe's accounts. */
import type { StripeResponse } from './client.ts';
import type { StripeRequest } from './requests.ts';
import { listOf, paymentIntent, refundWithIntent } from './shapes.ts';

/** No PaymentIntent is older. In seconds since 1970. */
export const FIRST_SECOND = Date.UTC(2018, 0, 1) / 1_000;
/** Stripe's clock may be ahead of ours by so much, and a window that ended so long ago is complete. */
export const CLOCKS_S_MAX = 60;
/** Accounts that are read at once. */
const BOOKS_AT_ONCE = 8;

/** Sends a request once, with a deadline of its own. Never throws. */
export type Send = (request: StripeRequest) => Promise<StripeResponse>;
/** The account that is read; `name` for what goes wrong with it. */
export type Book = { send: Send; name: string | undefined };

export const intents = listOf(paymentIntent);
export const refunds = listOf(refundWithIntent);

/** One page of a list. Throws Error where Stripe cannot be read. */
export const readPage = async <T>(
  send: Send,
  request: StripeRequest,
  shape: { parse(body: unknown): T },
): Promise<T> => {
  const response = await send(request);
  if ('sent' in response) throw new Error(`the provider's ledger: ${response.reason}`);
  if (response.status !== 200) throw new Error(`the provider's ledger: status ${response.status}`);
  return shape.parse(response.body);
};

const readBook = async <T>({ send, name }: Book, read: (send: Send) => Promise<T>): Promise<T> => {
  try {
    return await read(send);
  } catch (error) {
    throw name === undefined ? error : new Error(`${Object(error).message} (${name})`);
  }
};

/** What is read of each account, in their order. Throws Error, with the name of the account. */
export async function* eachBook<T>(
  books: readonly Book[],
  read: (send: Send) => Promise<T>,
): AsyncGenerator<T> {
  for (let next = 0; next < books.length; next += BOOKS_AT_ONCE) {
    const some = books.slice(next, next + BOOKS_AT_ONCE);
    yield* await Promise.all(some.map((book) => readBook(book, read)));
  }
}
