/** The deliverer over a test clock: outages of days, changes of the leader, kills, other logs. */
import { describe, expect, jest, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreUnavailable,
} from '../../shared/event-store/errors.ts';
import type { WebhookEvent } from '../../shared/payment/webhook-events.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import { parseDeliveryRow, textOfDeliveryRow } from '../../webhooks/delivery/delivery-row.ts';
import { readEndpoints } from '../../webhooks/endpoints/endpoint-log.ts';
import { endpointStreamOf } from '../../webhooks/endpoints/endpoints.ts';
import { endpointKey, secretTextOf } from '../../webhooks/signer.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { captured, newEvent } from '../support/payment-events.ts';
import { until } from '../support/until.ts';
import {
  MERCHANT,
  memoryDeliveries,
  registerEndpoint,
  type Sent,
  WORLD_SECRET,
  webhookWorld,
} from '../support/webhook-world.ts';

// Many of these wait for one another's clocks; a busy machine is no failure.
const HOUR = 3_600_000;
const MINUTE = 60_000;

const idsOf = (sent: readonly Sent[]) => sent.map(({ headers }) => headers['webhook-id']);
const dataOf = ({ body }: Sent) => JSON.parse(body).data;
const revisionsOf = (sent: readonly Sent[], paymentId: string): number[] =>
  sent
    .map(dataOf)
    .flatMap(({ payment, revision }) => (payment?.paymentId === paymentId ? [revision] : []));

/** Each message is verified by the library at its own time, by each secret that was live then. */
const expectVerified = (
  sent: readonly Sent[],
  endpointId: string,
  rotation: { atMs: number; untilMs: number },
): void => {
  const libraries = [1, 2].map(
    (number) => new Webhook(secretTextOf(endpointKey(WORLD_SECRET, endpointId, number))),
  );
  const now = jest.spyOn(Date, 'now');
  try {
    for (const { headers, body, atMs } of sent) {
      now.mockReturnValue(atMs);
      const isLive = [atMs < rotation.untilMs, atMs >= rotation.atMs];
      expect(headers['webhook-signature']?.split(' ')).toHaveLength(isLive.filter(Boolean).length);
      for (const [index, library] of libraries.entries()) {
        if (isLive[index]) expect(library.verify(body, headers)).toEqual(JSON.parse(body));
        else expect(() => library.verify(body, headers)).toThrow();
      }
    }
  } finally {
    now.mockRestore();
  }
};

type World = ReturnType<typeof webhookWorld>;
/** Lets time pass in small steps, so that what one step causes happens at its own time. */
const pass = async ({ clock }: World, ms: number, stepMs = MINUTE): Promise<void> => {
  for (let left = ms; left > 0; left -= stepMs) await clock.advance(Math.min(stepMs, left));
};
const untilSent = (world: World, count: number): Promise<void> =>
  until(`${count} requests`, async () => {
    await world.clock.advance(1);
    return world.sent.length >= count;
  });

test("a merchant's year: nothing is lost by an outage, a rotation, a disabling or a resend", async () => {
  await using world = webhookWorld();
  const endpointId = await world.register();
  await world.pay('pay_1', 6);
  await untilSent(world, 3);

  await world.clock.advance(1_000);
  const rotation = { atMs: world.nowMs(), untilMs: world.nowMs() + 24 * HOUR };
  const oldExpiresAt = new Date(rotation.untilMs).toISOString();
  await world.command(MERCHANT, { kind: 'rotate', endpointId, oldExpiresAt });
  await world.pay('pay_2');
  await untilSent(world, 4);

  world.outcome = () => ({ status: 500 });
  for (const n of [3, 4, 5, 6]) await world.pay(`pay_${n}`, 4);
  await untilSent(world, 8);
  await pass(world, 20 * HOUR, 5 * MINUTE);
  expect(world.deliverer.status().endpoints).toMatchObject({ FAILING: 1, ENABLED: 0 });
  const { attempts } = world.deliveries;
  const latest = (await attempts(endpointId, { limit: 1_000 })).map(({ attempt }) => attempt);
  expect(latest[0]).toMatchObject({ outcome: 'RETRYING', nextAt: null });
  expect(latest.findLast(({ status }) => status === 500)?.nextAt).not.toBeNull();
  // At most one request each five minutes, give or take the jitter.
  expect(world.sent.length).toBeLessThan(20 * 13 + 20);
  world.outcome = undefined;
  const before = world.sent.length;
  await pass(world, HOUR);
  const after = world.sent.slice(before);
  for (const n of [3, 4, 5, 6]) expect(revisionsOf(after, `pay_${n}`)).toEqual([1, 3]);
  expect(new Set(idsOf(after)).size).toBe(after.length);

  await pass(world, 4 * HOUR, 10 * MINUTE);
  await world.pay('pay_7');
  await untilSent(world, before + 9);

  world.outcome = () => ({ status: 500 });
  await world.pay('pay_8');
  await pass(world, 74 * HOUR, 10 * MINUTE);
  const { endpoints } = await readEndpoints(world.store, MERCHANT);
  expect(endpoints).toMatchObject([{ disabled: { reason: 'UNREACHABLE' } }]);
  expect(world.lines).toContain('webhook endpoint disabled');
  const silentFrom = world.sent.length;
  await world.pay('pay_9');
  await pass(world, 3 * HOUR, 10 * MINUTE);
  expect(world.sent.length).toBe(silentFrom);

  world.outcome = undefined;
  await world.command(MERCHANT, {
    ...{ kind: 'change', endpointId, status: 'ENABLED', end: null },
  });
  await untilSent(world, silentFrom + 2);
  const missed = world.sent.slice(silentFrom);
  for (const paymentId of ['pay_8', 'pay_9']) expect(revisionsOf(missed, paymentId)).toEqual([1]);

  const resentFrom = world.sent.length;
  await world.command(MERCHANT, { kind: 'resend', endpointId, since: '2026-01-01T00:00:00.000Z' });
  await untilSent(world, resentFrom + 15);
  await pass(world, 10 * MINUTE);
  const resent = world.sent.slice(resentFrom);
  expect(new Set(idsOf(resent))).toEqual(new Set(idsOf(world.sent)));
  expect(resent.length).toBe(new Set(idsOf(resent)).size);
  expectVerified(world.sent, endpointId, rotation);
});

test('a request after silence has 3 seconds, and 15 once its endpoint was heard of, or had its 3', async () => {
  const lost = { status: null, error: 'TIMEOUT' };
  const outcomes: object[] = [lost, {}, {}, { status: 500 }, {}, {}];
  await using world = webhookWorld({ outcome: () => outcomes.shift() ?? {} });
  await world.register();
  await world.pay('pay_1');
  await untilSent(world, 1);
  await pass(world, MINUTE, 1_000);
  await world.pay('pay_2');
  await untilSent(world, 3);
  await world.pay('pay_3');
  await untilSent(world, 4);
  await pass(world, MINUTE, 1_000);
  await pass(world, 10 * MINUTE);
  await world.pay('pay_4');
  await untilSent(world, 6);
  expect(world.sent.map(({ totalMs }) => totalMs / 1_000)).toEqual([3, 15, 15, 15, 15, 3]);
});

test('a test that is not accepted is a line for those who look for it, and no error', async () => {
  await using world = webhookWorld({ outcome: () => ({ status: 500 }) });
  const endpointId = await world.register();
  await world.command(MERCHANT, { kind: 'test', endpointId });
  await until('it is given up', () => world.infos.length > 0);
  expect([world.infos, world.lines]).toEqual([['webhook message given up'], []]);
});

test('a crash would repeat no more than an endpoint has requests at a time', async () => {
  await using world = webhookWorld();
  const endpointId = await world.register();
  let mostUnsaved = 0;
  let accepted = 0;
  world.outcome = async () => {
    const saved = await world.deliveries.attempts(endpointId, { limit: 1_000 });
    mostUnsaved = Math.max(mostUnsaved, accepted - saved.length);
    accepted += 1;
    return {};
  };
  for (let n = 0; n < 60; n += 1) await world.pay(`pay_${n}`);
  await until('all of them', async () => {
    await world.clock.advance(1);
    return accepted === 60;
  });
  expect(mostUnsaved).toBeLessThanOrEqual(16);
});

test('before the first endpoint the deliverer does not follow the log', async () => {
  await using world = webhookWorld();
  await world.pay('pay_1');
  const before = await world.store.end();
  expect(world.deliverer.status().state).toBe('idle');
  await world.register();
  await world.pay('pay_2');
  await untilSent(world, 1);
  const { count, after } = world.store.subscriptions();
  expect([count, Number(after) > Number(before)]).toEqual([1, true]);
});

test('a fault of ours while a message is sent is told once, and the message is sent again', async () => {
  await using world = webhookWorld({
    outcome: () => {
      throw new TypeError('a fault');
    },
  });
  const endpointId = await world.register();
  await world.pay('pay_1');
  const restarted = 'webhook delivery interrupted: it is tried again';
  await until('it is restarted', async () => {
    await world.clock.advance(MINUTE);
    return world.lines.includes(restarted);
  });
  await pass(world, HOUR);
  expect(world.lines.filter((line) => line === restarted)).toHaveLength(1);
  expect(world.lines).not.toContain('webhook state not saved: nothing is sent until it can be');
  world.outcome = undefined;
  const row = () => parseDeliveryRow(world.deliveries.rows.get(endpointId)?.text ?? '');
  await until('the message is accepted', async () => {
    await world.clock.advance(MINUTE);
    return row().checkpoint !== null && row().oldestWaiting === null;
  });
  expect(row().fails).toBe(0);
});

test('an endpoint that is gone is disabled, though an append is refused or of unknown outcome', async () => {
  const store = memoryEventStore();
  const failures: Error[] = [];
  const appended: string[] = [];
  const append: typeof store.append = async (stream, expected, events) => {
    const failure = failures.shift();
    if (failure === undefined) return store.append(stream, expected, events);
    appended.push(events.map(({ id }) => id).join());
    throw failure;
  };
  await using world = webhookWorld({
    store: { ...store, append },
    outcome: () => ({ status: 410 }),
  });
  await world.register();
  await world.pay('pay_1', 4);
  failures.push(
    new AppendOutcomeUnknown('the disk did not say'),
    new RevisionConflict('another was first'),
    new StoreUnavailable('the disk is full'),
  );
  await until('it is disabled', async () => {
    await world.clock.advance(MINUTE);
    return world.deliverer.status().endpoints.DISABLED === 1;
  });
  // Of unknown outcome: the very same append again. A conflict: decided again. Else: the next failure does it.
  expect([appended[1] === appended[0], appended[2] === appended[0]]).toEqual([true, false]);
  expect(world.lines).toContain('webhook endpoint not disabled yet');
  expect((await readEndpoints(store, MERCHANT)).endpoints).toMatchObject([
    { disabled: { reason: 'GONE' } },
  ]);
});

test('a payment after the disabling of its endpoint waits, though one batch has both', async () => {
  const memory = memoryEventStore();
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  const readStream = async (stream: string) => {
    if (isHeld && stream === endpointStreamOf('m_2')) await held.promise;
    return memory.readStream(stream);
  };
  await using world = webhookWorld({ store: { ...memory, readStream } });
  const endpointId = await world.register();
  await world.register('m_2');
  await world.pay('pay_1');
  await untilSent(world, 1);
  isHeld = true;
  await registerEndpoint(memory, 'm_2', 'https://second.example/hook');
  await world.command(MERCHANT, { kind: 'change', endpointId, status: 'DISABLED', end: null });
  await world.pay('pay_2');
  await world.pay('pay_3', 2, 'm_2');
  held.resolve();
  await untilSent(world, 3);
  expect(revisionsOf(world.sent, 'pay_2')).toEqual([]);
});

describe('several processes', () => {
  test('who has lost the row to another saves nothing, and takes it again in its turn', async () => {
    await using world = webhookWorld();
    const endpointId = await world.register();
    await world.pay('pay_1');
    await untilSent(world, 1);
    const row = world.deliveries.rows.get(endpointId);
    world.deliveries.rows.set(endpointId, {
      version: (row?.version ?? 0) + 5,
      text: row?.text ?? '',
    });
    await world.pay('pay_2');
    await until('the line', async () => {
      await world.clock.advance(1);
      return world.infos.includes('interrupted: another process delivers to this endpoint');
    });
    await world.pay('pay_3');
    await until('the third payment', async () => {
      await world.clock.advance(1);
      return revisionsOf(world.sent, 'pay_3').length > 0;
    });
  });

  test('who loses its turn in the middle of a start says that it stands by, and sends nothing more', async () => {
    let turn: 'own' | 'of another' = 'of another';
    const memory = memoryEventStore();
    const held = Promise.withResolvers<void>();
    const store = {
      ...memory,
      readStream: async (stream: string) => {
        if (turn === 'own' && stream === endpointStreamOf('m_2')) await held.promise;
        return memory.readStream(stream);
      },
    };
    await using world = webhookWorld({ store, turn: () => turn });
    await world.register();
    await world.register('m_2');
    await world.pay('pay_1');
    const enabled = () => world.deliverer.status().endpoints.ENABLED;
    turn = 'own';
    await untilSent(world, 1);
    turn = 'of another';
    await until('the first has no loop', () => enabled() === 0);
    held.resolve();
    await until('it stands by', () => world.deliverer.status().state === 'standing-by');
    expect(world.deliverer.status()).not.toHaveProperty('error');
    await world.pay('pay_2');
    await world.clock.advance(MINUTE);
    expect([enabled(), world.sent.length]).toEqual([0, 1]);
  });

  test.each([
    ['of a process that was lost it waits until the last requests are over', false, 300],
    ['that was handed over it begins at once', true, 600_000],
  ])('after a turn %s', async (_what, isHandedOver, takeover) => {
    let turn: 'own' | 'of another' = 'of another';
    const handedOver = () => isHandedOver;
    await using world = webhookWorld({ turn: () => turn, handedOver, takeover });
    await world.register();
    await world.pay('pay_1');
    await until('it stands by', () => world.deliverer.status().state === 'standing-by');
    const beganMs = performance.now();
    turn = 'own';
    await untilSent(world, 1);
    if (!isHandedOver) expect(performance.now() - beganMs).toBeGreaterThanOrEqual(takeover);
  });

  test('while it is not known whose turn it is, nothing is sent', async () => {
    let looks = 0;
    const turn = () => {
      looks += 1;
      return 'unknown' as const;
    };
    await using world = webhookWorld({ turn });
    await world.register();
    await world.pay('pay_1');
    const before = looks;
    await until('it has looked again and again', () => looks > before + 5);
    expect(world.sent).toEqual([]);
    expect(world.deliveries.rows.size).toBe(0);
  });
});

const untilHalted = (world: World, count: number): Promise<void> =>
  until(`${count} halted`, () => world.deliverer.status().endpoints.HALTED === count);

describe('a merchant whose events of endpoints cannot be read', () => {
  const UNKNOWN_CHANGE: WebhookEvent = {
    type: 'WebhookEndpointChanged',
    data: { endpointId: `we_${newUlid()}`, description: 'of none' },
  };
  const HALTED = expect.stringContaining('webhook endpoints of a merchant halted: their events');

  test('is halted alone: the messages of others are sent, and its own once they can be read', async () => {
    const deliveries = memoryDeliveries();
    const store = memoryEventStore();
    const stream = endpointStreamOf(MERCHANT);
    const idsIn = (world: World) => world.sent.map((one) => dataOf(one).payment.paymentId);
    await using first = webhookWorld({ store, deliveries });
    await first.register(MERCHANT);
    await first.register('m_2');
    await first.pay('pay_1');
    await untilSent(first, 1);
    // Met while it delivers, by the next event of the stream, and at a start.
    store.damage(stream, 0, 'is not JSON');
    store.inject(stream, 1, { ...newEvent(captured()), event: UNKNOWN_CHANGE });
    await untilHalted(first, 1);
    await first.pay('pay_2');
    await first.pay('pay_3', 2, 'm_2');
    await untilSent(first, 2);
    expect(idsIn(first)).toEqual(['pay_1', 'pay_3']);
    await first.deliverer.stop();

    await using second = webhookWorld({ store, deliveries });
    await untilHalted(second, 1);
    await second.pay('pay_4', 2, 'm_2');
    await untilSent(second, 1);
    expect(idsIn(second)).toEqual(['pay_4']);
    await second.deliverer.stop();

    store.mend(stream);
    await using third = webhookWorld({ store, deliveries });
    await untilSent(third, 1);
    expect(idsIn(third)).toEqual(['pay_2']);
    expect(third.deliverer.status().endpoints.HALTED).toBe(0);
    expect([first, second, third].map(({ lines }) => lines)).toEqual([[HALTED], [HALTED], []]);
  });
});

describe('a log that is not the one that was sent', () => {
  /** A delivery that has sent from another log than the store's. */
  const halted = async () => {
    const deliveries = memoryDeliveries();
    const store = memoryEventStore();
    await using world = webhookWorld({ store, deliveries });
    const endpointId = await world.register();
    await world.pay('pay_1');
    await untilSent(world, 1);
    await world.deliverer.stop();
    const { text, version } = deliveries.rows.get(endpointId) ?? { text: '', version: 0 };
    const row = { ...parseDeliveryRow(text), checkpoint: '9999', hash: 'a'.repeat(64) };
    deliveries.rows.set(endpointId, { version, text: textOfDeliveryRow(row) });
    return { deliveries, store, endpointId };
  };
  test('is not sent from until the endpoint is resumed from now', async () => {
    const { deliveries, store, endpointId } = await halted();
    await using world = webhookWorld({ store, deliveries });
    await untilHalted(world, 1);
    await world.pay('pay_2');
    await world.clock.advance(MINUTE);
    expect(world.sent).toEqual([]);
    await world.command(MERCHANT, {
      ...{ kind: 'change', endpointId, status: 'ENABLED', resumeFrom: 'now' },
      end: await store.end(),
    });
    await world.pay('pay_3');
    await untilSent(world, 1);
    expect(revisionsOf(world.sent, 'pay_3')).toEqual([1]);
  });

  test('halts no endpoint that is deleted', async () => {
    const { deliveries, store, endpointId } = await halted();
    await using world = webhookWorld({ store, deliveries });
    await untilHalted(world, 1);
    await world.command(MERCHANT, { kind: 'delete', endpointId });
    await untilHalted(world, 0);
    await until('its row is gone', () => deliveries.rows.size === 0);
  });
});
