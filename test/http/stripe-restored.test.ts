/** A log that was put back, where more objects of others are newer at Stripe than are looked through. */
import { expect, test } from '@jest/globals';
import { acknowledge, backUp, putBack } from '../support/put-back.ts';
import { openOverStripe } from '../support/stripe-service.ts';
import { until } from '../support/until.ts';

const OTHERS = 2_100;

test.each([
  ['search finds the newest of ours', true],
  ['the account has no search', false],
])(
  `gaps §17: no money moves behind ${OTHERS} newer objects of others until it is acknowledged; %s`,
  async (_name, searches) => {
    await using over = await openOverStripe();
    const { double, service } = over;
    const { intents, dashboard } = double.books;
    const charges = () =>
      [...intents.values()].filter(({ latest_charge: charge }) => charge !== null).length;
    const pay = (key: string) => service.create({ captureNow: true }, { key });
    expect((await pay('before')).status).toBe(200);
    backUp(service);
    expect((await pay('charged')).status).toBe(200);
    for (let made = 0; made < OTHERS; made += 1) dashboard.open();
    // A day later Stripe would not replay the request.
    double.prune();
    if (!searches) double.endSearch();
    await putBack(service);

    const isCompared = async () => (await pay('new')).text.includes('--acknowledge');
    await until('Stripe is compared', isCompared);
    for (const key of ['charged', 'new']) {
      const refused = await pay(key);
      expect([refused.status, refused.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
      expect(refused.text).toContain('payments reconcile --acknowledge');
    }
    expect((await service.ask('GET', '/api/v1/payments')).status).toBe(200);
    expect(charges()).toBe(2);

    expect((await acknowledge(service)).status).toBe(200);
    expect((await pay('new')).status).toBe(200);
    expect(charges()).toBe(3);
  },
);
