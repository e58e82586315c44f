/**
 * A POST and the GET that follows it at once, by writers each of which has its payments to itself:
 * the two bodies are the same bytes, or something was lost or is older.
 */

import type { Random } from './random.ts';
import type { Body } from './service-client.ts';
import { payment } from './service-in-process.ts';

type Reply = { status: number; text: string };

/** The way to a service; undefined where it died before its answer was there. */
export type PairLine = {
  post(path: string, body: object): Promise<Reply | undefined>;
  get(paymentId: string): Promise<Reply | undefined>;
};

export type Pairs = {
  /** How many were asked for in all. */
  posts: number;
  /** How many had both answers to compare, and how many payments were compared again later. */
  compared: number;
  comparedAgain: number;
  /** The last body that each payment was answered with, and whether more was sent since. */
  last: Map<string, { text: string; touched: boolean }>;
  /** What was wrong, in words. */
  wrong: string[];
};

export const noPairs = (): Pairs => ({
  posts: 0,
  compared: 0,
  comparedAgain: 0,
  last: new Map(),
  wrong: [],
});

const nextOf = (paid: Body, random: Random): [path: string, body: object] | undefined => {
  const { paymentId, status, refundableAmount } = paid;
  if (status === 'AUTHORIZED') {
    if (random.chance(0.2)) return [`/${paymentId}/void`, {}];
    return [`/${paymentId}/capture`, { captureAmount: random.between(50, paid.amount) }];
  }
  if (status !== 'CAPTURED' || random.chance(0.3)) return undefined;
  return [`/${paymentId}/refund`, { refundAmount: random.between(1, refundableAmount) }];
};

const compare = (pairs: Pairs, after: string, text: string, got: Reply): void => {
  if (got.status === 200 && got.text === text) return;
  pairs.wrong.push(`after ${after}: ${got.status} ${got.text}\nwhere it was ${text}`);
};

/** One POST and its GET; gives the payment, or undefined when the service is gone. */
const pair = async (
  { line, pairs }: Writing,
  path: string,
  body: object,
): Promise<Body | undefined> => {
  pairs.posts += 1;
  const known = pairs.last.get(path.split('/')[1] ?? '');
  if (known !== undefined) known.touched = true;
  const response = await line.post(path, body);
  if (response === undefined) return undefined;
  if (response.status !== 200) throw new Error(`POST ${path}: ${response.status} ${response.text}`);
  const paid = JSON.parse(response.text) as Body;
  pairs.last.set(paid.paymentId, { text: response.text, touched: false });
  const got = await line.get(paid.paymentId);
  if (got === undefined) return undefined;
  pairs.compared += 1;
  compare(pairs, `POST ${path || '/'}`, response.text, got);
  return paid;
};

export type Writing = { line: PairLine; pairs: Pairs; random: Random; until: number };

const writer = async (writing: Writing): Promise<void> => {
  const { random, pairs } = writing;
  while (pairs.posts < writing.until) {
    const fields = { amount: random.between(100, 9999), captureNow: random.chance(0.3) };
    let paid = await pair(writing, '', payment(fields));
    if (paid === undefined) return;
    for (let next = nextOf(paid, random); next !== undefined; next = nextOf(paid, random)) {
      paid = await pair(writing, ...next);
      if (paid === undefined) return;
    }
  }
};

/** Writes until so many pairs were asked for, or the service is gone. */
export const writePairs = async (writing: Writing, writers: number): Promise<void> => {
  await Promise.all(Array.from({ length: writers }, () => writer(writing)));
};

/** Asks again for every payment whose last body is known for sure. */
export const readAgain = async ({ line, pairs }: Pick<Writing, 'line' | 'pairs'>) => {
  for (const [paymentId, { text, touched }] of pairs.last) {
    if (touched) continue;
    const got = await line.get(paymentId);
    pairs.comparedAgain += 1;
    compare(pairs, 'a restart', text, got ?? { status: 0, text: 'no answer' });
  }
};
