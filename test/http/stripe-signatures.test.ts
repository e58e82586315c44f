/** A header that Stripe's own library refuses is never let in: several hundred of them, by a printed seed. */
import { createHmac } from 'node:crypto';
import { afterAll, expect, test } from '@jest/globals';
import Stripe from 'stripe';
import { newSeed, randomOf } from '../support/random.ts';
import { openOverStripe, STRIPE_SECRET } from '../support/stripe-service.ts';

const HEADERS = 600;
const BODY = JSON.stringify({ id: 'evt_1', data: { object: { object: 'payout', note: 'é €' } } });
const seed = newSeed();
const over = await openOverStripe({ RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '0' });
afterAll(() => over[Symbol.asyncDispose]());

const random = randomOf(seed);
const mostly = <T>(good: T, others: readonly T[]): T =>
  random.chance(0.8) ? good : (others[random.between(0, others.length - 1)] as T);

const someTime = (nowS: number): string => {
  const at = nowS + mostly(0, [-1, -290, -310, -3_600, 290, 310]);
  return mostly(`${at}`, [`0${at}`, ` ${at}`, `${at}.5`, `+${at}`, '']);
};
const signatureOf = (time: string): string => {
  const secret = mostly(STRIPE_SECRET, ['whsec_of_a_forger', '']);
  const body = mostly(BODY, [`${BODY} `, '{}']);
  return createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
};
const bent = (signature: string): string =>
  mostly(signature, [
    signature.slice(0, -1),
    `${signature}0`,
    `${signature}=${signature}`,
    signature.toUpperCase(),
    ` ${signature}`,
    // Nothing at all is no case: the library fails on it before it looks at the next one.
    '0',
  ]);
/** One time and one to three signatures, in the order of Stripe, or what is near it. */
const someHeader = (nowS: number): string => {
  const time = someTime(nowS);
  const given = Array.from(
    { length: random.between(1, 3) },
    () => `${mostly('v1', ['v0', ' v1', 'V1'])}=${bent(signatureOf(time))}`,
  );
  const [own, other] = [`t=${time}`, `t=${nowS - 1}`];
  const times = mostly([own], [[], [other, own], [own, other]]);
  return mostly([...times, ...given], [[...given, ...times]]).join(mostly(',', [', ', ';']));
};

const isLetInByStripe = (header: string): boolean => {
  try {
    Stripe.webhooks.constructEvent(BODY, header, STRIPE_SECRET);
    return true;
  } catch {
    return false;
  }
};

test(`what Stripe's library refuses is 401, seed ${seed}`, async () => {
  const seen = { both: 0, none: 0, stripeAlone: 0 };
  for (let sent = 0; sent < HEADERS; sent += 1) {
    const header = someHeader(Math.floor(Date.now() / 1_000));
    // First: what is too old for it is too old a moment later as well.
    const isStripes = isLetInByStripe(header);
    const { status } = await over.deliver(BODY, header);
    expect([200, 401]).toContain(status);
    if (!isStripes) expect([header, status]).toEqual([header, 401]);
    if (status === 200) seen.both += 1;
    else seen[isStripes ? 'stripeAlone' : 'none'] += 1;
  }
  // Each kind was met. Times that are ahead are let in by the library alone.
  expect(Math.min(...Object.values(seen))).toBeGreaterThan(0);
  process.stderr.write(`signatures, seed ${seed}: ${JSON.stringify(seen)}\n`);
});
