/**
 * Merchants at work on a service that may refuse them: what it acknowledged is kept, what it
 * refused ends the work on that payment.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { PAYMENTS, payment } from './in-process.ts';
import type { Random } from './random.ts';
import type { Body, Service } from './service.ts';
import type { Acknowledged } from './writers.ts';

const REFUSAL_PAUSE_MS = 20;

export type Work = {
  service: Service;
  bearer: string;
  random: Random;
  acknowledged: Map<string, Acknowledged>;
  counts: { taken: number; refused: number };
  ended: boolean;
};

const send = async ({ service, bearer, counts }: Work, path: string, body: object) => {
  const response = await fetch(`${service.url}${PAYMENTS}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}` },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (response.status === 200) counts.taken += 1;
  else counts.refused += 1;
  if (![200, 500, 503].includes(response.status)) {
    throw new Error(`not ours: ${path} ${response.status} ${text}`);
  }
  return response.status === 200 ? text : undefined;
};

const nextOf = ({ status, amount, refundableAmount }: Body, random: Random) => {
  if (status === 'AUTHORIZED') {
    if (random.chance(0.2)) return ['void', {}] as const;
    return ['capture', { captureAmount: random.between(50, amount) }] as const;
  }
  if (status !== 'CAPTURED' || random.chance(0.4)) return undefined;
  return ['refund', { refundAmount: random.between(1, refundableAmount) }] as const;
};

/** One payment as far as chance has it; what is refused ends the work on it. */
const onePayment = async (work: Work): Promise<boolean> => {
  const { random, acknowledged } = work;
  const fields = { amount: random.between(100, 9999), captureNow: random.chance(0.3) };
  let body = await send(work, '', payment(fields));
  while (body !== undefined) {
    const paid = JSON.parse(body) as Body;
    const known: Acknowledged = { body, touched: false };
    acknowledged.set(paid.paymentId, known);
    const next = nextOf(paid, random);
    if (next === undefined) return true;
    known.touched = true;
    body = await send(work, `/${paid.paymentId}/${next[0]}`, next[1]);
  }
  return false;
};

const writer = async (work: Work): Promise<void> => {
  while (!work.ended) if (!(await onePayment(work))) await wait(REFUSAL_PAUSE_MS);
};

/** Work that has not begun. */
export const newWork = (service: Service, bearer: string, random: Random): Work => ({
  service,
  bearer,
  random,
  acknowledged: new Map(),
  counts: { taken: 0, refused: 0 },
  ended: false,
});

/** Works until `ended` is set; throws at an answer that is none of ours, or at none at all. */
export const workTogether = (work: Work, count: number): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, () => writer(work)));
