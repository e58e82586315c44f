/**
 * Deaths of the deliverer around send and save, in the test's own process: from its death on nothing
 * that it began ends, and whatever it had not saved is gone. A new one goes on over the same stores.
 */
import { expect, test } from '@jest/globals';
import type { DeliveryStore } from '../../webhooks/store/port.ts';
import { timesOf } from '../support/long-run-share.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { type Random, randomOf } from '../support/random.ts';
import { until } from '../support/until.ts';
import { memoryDeliveries, type Sent, webhookWorld } from '../support/webhook-world.ts';

const DEATHS = timesOf(950, 15);
const MINUTE = 60_000;
const POINTS = ['before the request', 'after it', 'before the save', 'after it'].length;
const never = (): Promise<never> => new Promise(() => undefined);

/** A life: it ends at a point that is drawn beforehand. */
const lifeOf = (random: Random) => {
  let left = random.between(1, 6 * POINTS);
  const life = {
    alive: true,
    /** Passes a point, or dies there. */
    pass: async (): Promise<void> => {
      if (!life.alive) return never();
      left -= 1;
      if (left > 0) return undefined;
      life.alive = false;
      return never();
    },
  };
  return life;
};

type Life = ReturnType<typeof lifeOf>;

const mortal = (deliveries: ReturnType<typeof memoryDeliveries>, life: Life) => ({
  ...deliveries,
  save: async (...row: Parameters<DeliveryStore['save']>): Promise<boolean> => {
    await life.pass();
    const saved = await deliveries.save(...row);
    await life.pass();
    return saved;
  },
});

const dataOf = ({ body }: Sent) => JSON.parse(body).data;

/** All revisions of each payment, in the order that they were received. */
const revisionsByPayment = (received: readonly Sent[]): Map<string, number[]> => {
  const revisions = new Map<string, number[]>();
  for (const { payment, revision } of received.map(dataOf)) {
    const own = revisions.get(payment.paymentId) ?? [];
    revisions.set(payment.paymentId, [...own, revision]);
  }
  return revisions;
};

test(`${DEATHS} deaths at points drawn at random lose nothing, and turn nothing of a payment round`, async () => {
  const random = randomOf();
  const store = memoryEventStore();
  const deliveries = memoryDeliveries();
  const received: Sent[] = [];
  let payments = 0;
  let startMs = Date.now();
  for (let killed = 0; killed < DEATHS; killed += 1) {
    const life = lifeOf(random);
    const world = webhookWorld({
      store,
      startMs,
      deliveries: mortal(deliveries, life),
      outcome: async (sent) => {
        await life.pass();
        received.push(sent);
        await life.pass();
        return { status: random.chance(0.1) ? 500 : 200 };
      },
    });
    if (killed === 0) await world.register();
    for (const _ of [0, 1]) await world.pay(`pay_${payments++}`, 6);
    await until('its death', async () => {
      if (life.alive) await world.clock.advance(MINUTE);
      // All was sent before it could die: more happens.
      if (life.alive && world.deliverer.status().oldestWaitingMs === null)
        await world.pay(`pay_${payments++}`, 6);
      return !life.alive;
    });
    startMs = world.nowMs();
    void world.deliverer.stop();
  }
  await using world = webhookWorld({
    ...{ store, startMs, deliveries },
    outcome: (sent) => {
      received.push(sent);
      return {};
    },
  });
  const isWhole = () => {
    const all = revisionsByPayment(received);
    return all.size === payments && [...all.values()].every((own) => new Set(own).size === 3);
  };
  await until('everything', async () => {
    await world.clock.advance(MINUTE);
    return world.deliverer.status().oldestWaitingMs === null && isWhole();
  });
  for (const revisions of revisionsByPayment(received).values())
    expect([...new Set(revisions)]).toEqual([1, 3, 5]);
  const messages = payments * 3;
  process.stderr.write(
    `webhooks: ${DEATHS} deaths, ${messages} messages, ${received.length - messages} requests more than messages\n`,
  );
  expect(messages).toBeGreaterThan(DEATHS);
});
