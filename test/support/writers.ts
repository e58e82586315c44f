/**
 * Merchants at work: each writer creates payments and captures, voids and refunds them until the
 * service is gone. What was acknowledged is kept; what was under way when it died is marked.
 */
import payment from '../../examples/payment.json' with { type: 'json' };
import type { Random } from './random.ts';
import type { Body } from './service.ts';

/** A payment by the last answer that reached its writer. */
export type Acknowledged = {
  body: string;
  /** True when a later operation on it was sent and not acknowledged. */
  touched: boolean;
};

export type Line = { url: string; token: string };

export type Work = {
  line: Line;
  random: Random;
  acknowledged: Map<string, Acknowledged>;
  /** How many operations were answered with 200. */
  operations: number;
};

const APPROVED = '4242424242424242';
const RESPONSE_LOST = '4000000000004236';
const SLOW = '4000000000004269';

/** Sends a POST; undefined when the service died before its answer was there. */
const send = async ({ url, token }: Line, path: string, body: unknown) => {
  try {
    const response = await fetch(`${url}/api/v1/payments${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(15_000),
    });
    return { status: response.status, text: await response.text() };
  } catch {
    return undefined;
  }
};

const newPayment = (random: Random) => {
  const { card } = payment.paymentMethod;
  const number = random.chance(0.04) ? SLOW : random.chance(0.05) ? RESPONSE_LOST : APPROVED;
  return {
    ...payment,
    amount: random.between(100, 9999),
    captureNow: random.chance(0.3),
    paymentMethod: { type: 'CARD', card: { ...card, number } },
  };
};

type Step = { path: string; body: object };

/** What can be done next with a payment; undefined when nothing can, or chance ends it here. */
const nextStep = (paid: Body, random: Random): Step | undefined => {
  if (paid.status === 'AUTHORIZED') {
    if (random.chance(0.1)) return { path: 'void', body: {} };
    return { path: 'capture', body: { captureAmount: random.between(1, paid.amount) } };
  }
  if (paid.status !== 'CAPTURED' || random.chance(0.3)) return undefined;
  return { path: 'refund', body: { refundAmount: random.between(1, paid.refundableAmount) } };
};

/** Carries one payment on as far as chance has it; false when the service is gone. */
const workOn = async (work: Work, created: Body): Promise<boolean> => {
  const { line, random, acknowledged } = work;
  let paid = created;
  for (let step = nextStep(paid, random); step !== undefined; step = nextStep(paid, random)) {
    const known = acknowledged.get(paid.paymentId);
    if (known !== undefined) known.touched = true;
    const response = await send(line, `/${paid.paymentId}/${step.path}`, step.body);
    if (response === undefined) return false;
    if (response.status !== 200)
      throw new Error(`${step.path}: ${response.status} ${response.text}`);
    work.operations += 1;
    acknowledged.set(paid.paymentId, { body: response.text, touched: false });
    paid = JSON.parse(response.text) as Body;
  }
  return true;
};

/** One writer; resolves once the service no longer answers. */
const writer = async (work: Work): Promise<void> => {
  for (;;) {
    const response = await send(work.line, '', newPayment(work.random));
    if (response === undefined) return;
    // A lost answer is no acknowledgement: its payment only has to be resolved.
    if (response.status === 503) continue;
    if (response.status !== 200) throw new Error(`create: ${response.status} ${response.text}`);
    const paid = JSON.parse(response.text) as Body;
    work.operations += 1;
    work.acknowledged.set(paid.paymentId, { body: response.text, touched: false });
    if (!(await workOn(work, paid))) return;
  }
};

/** Starts writers side by side; resolves once all of them have seen the service die. */
export const startWriters = (work: Work, count: number): Promise<unknown> =>
  Promise.all(Array.from({ length: count }, () => writer(work)));
