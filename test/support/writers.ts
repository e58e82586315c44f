/**
 * Merchants at work: each writer creates payments and captures, voids and refunds them until the work
 * has ended or the service is gone. It keeps each acknowledged operation, and marks the one under way.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Random } from './random.ts';
import type { Body } from './service-client.ts';
import { PAYMENTS, payment } from './service-in-process.ts';
import { HANGS_MS } from './time-bounds.ts';

/** A payment by the last response that reached its writer. */
export type Acknowledged = {
  body: string;
  /** True when a later operation on it was sent and not acknowledged. */
  touched: boolean;
};

export type Work = ReturnType<typeof newWork>;

const APPROVED = '4242424242424242';
const RESPONSE_LOST = '4000000000004236';
const SLOW = '4000000000004269';
const REFUSAL_PAUSE_MS = 20;

/** Work that has not begun. Where the service `mayRefuse`, a 500 or 503 is no error, and no card is slow. */
export const newWork = (
  { url }: { url: string },
  token: string,
  random: Random,
  mayRefuse = false,
) => ({
  ...{ url, token, random, mayRefuse },
  acknowledged: new Map<string, Acknowledged>(),
  /** Operations that were answered with 200, and that were refused. */
  counts: { taken: 0, refused: 0 },
  ended: false,
});

/** The body of a 200; undefined where it was refused, or the service died before its response. */
const send = async (
  work: Work,
  path: string,
  body: unknown,
  refusals: readonly number[] = work.mayRefuse ? [500, 503] : [],
): Promise<string | undefined> => {
  let response: { status: number; text: string };
  try {
    const got = await fetch(`${work.url}${PAYMENTS}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${work.token}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(HANGS_MS),
    });
    response = { status: got.status, text: await got.text() };
  } catch (error) {
    // What may refuse is not to die.
    if (work.mayRefuse) throw error;
    work.ended = true;
    return undefined;
  }
  const { status, text } = response;
  if (status === 200) work.counts.taken += 1;
  else work.counts.refused += 1;
  if (![200, ...refusals].includes(status)) throw new Error(`${path}: ${status} ${text}`);
  return status === 200 ? text : undefined;
};

/** A lost response is no acknowledgement: its payment only has to be resolved. */
const create = (work: Work): Promise<string | undefined> => {
  const { random, mayRefuse } = work;
  const isSlow = random.chance(0.04);
  const isLost = random.chance(0.05);
  const number = isSlow ? SLOW : isLost ? RESPONSE_LOST : APPROVED;
  const fields = { amount: random.between(100, 9999), captureNow: random.chance(0.3) };
  if (mayRefuse) return send(work, '', payment(fields));
  return send(work, '', payment({ ...fields, number }), number === RESPONSE_LOST ? [503] : []);
};

/** What can be done next with a payment; undefined when nothing can, or chance ends it here. */
const nextStep = (paid: Body, random: Random): [path: string, body: object] | undefined => {
  if (paid.status === 'AUTHORIZED') {
    if (random.chance(0.1)) return ['void', {}];
    return ['capture', { captureAmount: random.between(50, paid.amount) }];
  }
  if (paid.status !== 'CAPTURED' || random.chance(0.3)) return undefined;
  return ['refund', { refundAmount: random.between(1, paid.refundableAmount) }];
};

/** Carries one payment on as far as chance has it; false where a request of it was not acknowledged. */
const onePayment = async (work: Work): Promise<boolean> => {
  let body = await create(work);
  while (body !== undefined) {
    const paid = JSON.parse(body) as Body;
    const known: Acknowledged = { body, touched: false };
    work.acknowledged.set(paid.paymentId, known);
    const next = nextStep(paid, work.random);
    if (next === undefined) return true;
    known.touched = true;
    body = await send(work, `/${paid.paymentId}/${next[0]}`, next[1]);
  }
  return false;
};

const writer = async (work: Work): Promise<void> => {
  while (!work.ended) if (!(await onePayment(work))) await wait(REFUSAL_PAUSE_MS);
};

/** Starts writers side by side; resolves once the work has ended. */
export const startWriters = (work: Work, count: number): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, () => writer(work)));
