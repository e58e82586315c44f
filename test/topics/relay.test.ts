/**
 * The relay: P3, on the topic no event of a payment is missing or out of order, and a duplicate
 * has the same id and revision, whatever broker, store and checkpoint do.
 */
import { describe, expect, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import { SEALS_STREAM } from '../../shared/payment/seal-events.ts';
import type { KeyDocument } from '../../shared/read-models/key-document.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { parseCheckpoint } from '../../topics/checkpoint.ts';
import { partitionOf } from '../../topics/messages.ts';
import type { Relay } from '../../topics/relay.ts';
import { noRelay } from '../../topics/relay.ts';
import { relayState, watchRelayMetrics } from '../../topics/status.ts';
import { expectWhole, parsed, withoutRepeats } from '../support/feed-checks.ts';
import { appendLives, LIFE } from '../support/many-payments.ts';
import type { MemoryEventStore } from '../support/memory-event-store.ts';
import type { MemoryFeed } from '../support/memory-feed.ts';
import { newEvent, refunded } from '../support/payment-events.ts';
import {
  appendOne,
  logOf,
  openParts,
  type Parts,
  relaying,
  startOver,
  untilHalted,
  untilRunning,
  untilSent,
} from '../support/relaying.ts';
import { appendSeals } from '../support/seal-events.ts';
import { until } from '../support/until.ts';

// Many of these wait for one another's clocks; a busy machine is no failure.
/** Payments `from` to `to`. */
const append = (store: MemoryEventStore, from: number, to: number): Promise<void> =>
  appendLives(
    store,
    Array.from({ length: to - from }, (_, n) => `pay_${from + n}`),
  );
/** The first payments are in the log. */
const filled = async (payments: number, batchMax?: number): Promise<Parts> => {
  const parts = openParts(batchMax);
  await append(parts.store, 0, payments);
  return parts;
};
const untilWhole = async (parts: Parts, relay: Relay): Promise<void> => {
  await untilSent(parts, relay);
  expectWhole(parts.feed.stored('events'), await logOf(parts.store));
};

/** Saves up to a position, and from there on only breaks, as a relay that is killed each time. */
const killedPast = (document: KeyDocument, position: string) => {
  let kills = 0;
  const save: KeyDocument['save'] = async (text, version) => {
    if ((parseCheckpoint(text).position ?? '') <= position) return document.save(text, version);
    kills += 1;
    throw new Error('killed here');
  };
  return { checkpoint: { ...document, save }, kills: () => kills };
};
const positionOf = async (
  store: MemoryEventStore,
  paymentId: string,
  revision: number,
): Promise<string> => {
  const found = (await logOf(store)).find(
    (event) => event.stream === streamOf(paymentId) && event.revision === revision,
  );
  if (found === undefined) throw new Error('no such event');
  return found.position;
};

describe('P3: the relay', () => {
  test('sends every event once, in order, and the state after it with the same revision', async () => {
    const parts = await filled(5);
    await relaying(parts, async (relay) => {
      await untilWhole(parts, relay);
      await append(parts.store, 5, 9);
      await untilWhole(parts, relay);
      expect(relay.status()).toMatchObject({ state: 'running', parked: 0 });
      expect(relay.status().counts).toEqual({ published: 9 * LIFE, restarts: 0 });
      expect(await relay.lag()).toMatchObject({ events: 0, stuck: false });
    });
    const events = parsed(parts.feed.stored('events'));
    expect(events).toHaveLength(9 * LIFE);
    const states = parsed(parts.feed.stored('state'));
    expect(states.map(({ subject, sequence }) => [subject, sequence])).toEqual(
      events.map(({ subject, sequence }) => [subject, sequence]),
    );
    const ids = new Set([...events, ...states].map(({ id }) => id));
    expect(ids.size).toBe(2 * 9 * LIFE);
  });

  test('a broker that is down loses nothing: lag grows, it backs off, and catches up', async () => {
    const parts = await filled(2);
    await relaying(parts, async (relay) => {
      await untilSent(parts, relay);
      parts.feed.down(true);
      await append(parts.store, 2, 6);
      await until('several tries', () => relay.status().counts.restarts > 3);
      expect(relay.status()).toMatchObject({ state: 'backing-off', error: 'the broker is down' });
      expect((await relay.lag())?.events).toBe(4 * LIFE);
      parts.feed.down(false);
      await untilWhole(parts, relay);
      expect(relay.status().error).toBeUndefined();
    });
  });

  test('a lost acknowledgement, with all, some or no messages stored, leads to a repeat to the byte', async () => {
    const parts = await filled(3);
    // The state topic is first in each attempt.
    parts.feed.loseResponses(7, undefined, 0, undefined, 3, 5);
    await relaying(parts, async (relay) => {
      await untilWhole(parts, relay);
      expect(relay.status().counts.restarts).toBe(4);
    });
    expect(parts.feed.stored('events').length).toBeGreaterThan(3 * LIFE);
  });

  test('a crash between ack and checkpoint sends the same again, with the same numbers', async () => {
    const parts = await filled(4);
    // Only the start's own checkpoint is saved.
    const { checkpoint, kills } = killedPast(parts.checkpoint, '');
    await relaying(parts, () => until('sent, and no checkpoint', () => kills() > 3), {
      checkpoint,
    });
    await append(parts.store, 4, 6);
    await relaying(parts, (relay) => untilWhole(parts, relay));
    expect(parts.feed.stored('events').length).toBeGreaterThan(6 * LIFE);
  });

  test('large batches are sent in pieces, each with its own checkpoint', async () => {
    const parts = openParts(10_000);
    for (let n = 0; n < 600; n += 1) await appendOne(parts.store, `pay_${n}`, 0);
    const sizes: number[] = [];
    const feed: MemoryFeed = {
      ...parts.feed,
      publish: (topic, messages) => {
        if (topic === 'events') sizes.push(messages.length);
        return parts.feed.publish(topic, messages);
      },
    };
    await relaying(parts, (relay) => untilWhole(parts, relay), { feed });
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
  });
});

describe('two relays at once', () => {
  /** A relay of its own client whose next call of that kind waits. */
  const held = (parts: Parts, kind: 'overtake' | 'publish') => {
    const client = parts.feed.client();
    const reached = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const wait = async (): Promise<void> => {
      reached.resolve();
      await goOn.promise;
    };
    const feed: MemoryFeed = {
      ...parts.feed,
      ...client,
      overtake: async () => {
        if (kind === 'overtake') await wait();
        await client.overtake();
      },
      publish: async (topic, messages) => {
        if (kind === 'publish') await wait();
        await client.publish(topic, messages);
      },
    };
    const backOff = { minMs: 60_000, maxMs: 60_000 };
    const relay = startOver({ ...parts, feed }, { backOff });
    return { relay, reached, goOn };
  };
  const expectNewestLast = (parts: Parts): void => {
    const states = parsed(parts.feed.stored('state'));
    const last = new Map(states.map(({ subject, sequence }) => [subject, Number(sequence)]));
    expect([...last.values()]).toEqual([...last.keys()].map(() => LIFE - 1));
  };

  test.each(['publish', 'overtake'] as const)(
    'one that comes back from its %s after another one has begun stores no older state behind a newer one',
    async (kind) => {
      const parts = await filled(3);
      const older = held(parts, kind);
      await older.reached.promise;
      const newer = { ...parts, feed: { ...parts.feed, ...parts.feed.client() } };
      await relaying(newer, async (relay) => {
        await untilWhole(parts, relay);
        older.goOn.resolve();
        await until('it has noticed', () => older.relay.status().error !== undefined);
        expectNewestLast(parts);
        await append(parts.store, 3, 4);
        await untilWhole(parts, relay);
        expect(relay.status().counts.restarts).toBe(0);
      });
      await older.relay.stop();
      expectNewestLast(parts);
      expect(parts.feed.stored('events')).toHaveLength(4 * LIFE);
    },
  );
});

test('a relay that runs for long takes its place at the brokers again, before they forget it', async () => {
  const parts = openParts();
  let places = 0;
  const overtake = async (): Promise<void> => {
    places += 1;
    await parts.feed.overtake();
  };
  const feed = { ...parts.feed, overtake };
  await relaying(
    parts,
    async (relay) => {
      await untilRunning(relay);
      expect(places).toBe(1);
      await append(parts.store, 0, 2);
      await untilWhole(parts, relay);
      expect(places).toBeGreaterThan(1);
    },
    { feed, waitsMs: { overtakeAgain: 0 } },
  );
});

describe('the relay and its topics', () => {
  test('a changed partition count halts it, with what to do, and sends nothing', async () => {
    const parts = await filled(2);
    await relaying(parts, (relay) => untilSent(parts, relay));
    parts.feed.repartition({ events: 12, state: 6 });
    await append(parts.store, 2, 3);
    await relaying(parts, async (relay) => {
      await untilHalted(relay);
      expect(relay.status().error).toMatch(/events topic has 12 partitions and had 6.*PREFIX/);
      expect((await relay.lag())?.events).toBe(LIFE);
    });
    expect(parts.feed.stored('events')).toHaveLength(2 * LIFE);
  });

  test('it is noticed while running too', async () => {
    const parts = await filled(1);
    await relaying(
      parts,
      async (relay) => {
        await untilSent(parts, relay);
        parts.feed.repartition({ events: 6, state: 3 });
        await append(parts.store, 1, 2);
        await untilHalted(relay);
      },
      { waitsMs: { recheck: 0 } },
    );
    expect(parts.feed.stored('events')).toHaveLength(LIFE);
  });

  test('a log cut behind the checkpoint halts it', async () => {
    const parts = await filled(2);
    await relaying(parts, (relay) => untilSent(parts, relay));
    parts.store.cut(5);
    await relaying(parts, async (relay) => {
      await untilHalted(relay);
      expect(relay.status().error).toMatch(/the event log ends before/);
    });
  });

  test('a damaged checkpoint is never guessed', async () => {
    const parts = await filled(1);
    await parts.checkpoint.save('{}', 0);
    await relaying(parts, async (relay) => {
      await until('it says so', () => /is damaged/.test(relay.status().error ?? ''));
    });
    expect(parts.feed.stored('events')).toEqual([]);
  });

  test('a broker that does not respond shows in the status, and does not hold up the stop', async () => {
    const parts = await filled(1);
    parts.feed.freeze(true);
    const relay = startOver(parts, { waitsMs: { silence: 5, stop: 20 } });
    await until('it shows', () => relay.status().error === 'the broker does not answer');
    expect(relay.status().state).toBe('backing-off');
    await relay.stop();
    expect(relay.status().state).toBe('stopped');
  });

  test('health and metrics show lag and reason while the broker is away', async () => {
    const parts = await filled(2);
    await relaying(parts, async (relay) => {
      const metrics = createMetrics();
      watchRelayMetrics(metrics, relay);
      await untilSent(parts, relay);
      expect(relayState(relay)).toEqual({ state: 'running', parked: 0 });
      parts.feed.down(true);
      await append(parts.store, 2, 3);
      await until('it shows', () => relayState(relay).reason === 'the broker is down');
      const text = await metrics.text();
      expect(text).toContain(`payments_relay_published_total ${2 * LIFE}`);
      expect(text).toContain(`payments_relay_lag_events{topic="events"} ${LIFE}`);
      expect(text).toContain('payments_relay_parked 0');
    });
    expect(relayState(noRelay())).toEqual({ state: 'off' });
  });
});

describe('P5: an event that cannot be read', () => {
  const expectHeldBack = async (parts: Parts, paymentId: string, from: number): Promise<void> => {
    const sent = (await logOf(parts.store)).filter(
      ({ stream, revision }) => stream !== streamOf(paymentId) || revision < from,
    );
    expectWhole(parts.feed.stored('events'), sent);
  };

  test('holds back its own payment and no other, also where it reads well and cannot follow, and at the next start', async () => {
    const parts = openParts();
    await appendOne(parts.store, 'pay_9', 0);
    parts.store.inject(streamOf('pay_9'), 1, newEvent(refunded()));
    await append(parts.store, 0, 1);
    await relaying(parts, (relay) => untilSent(parts, relay));
    await append(parts.store, 1, 2);
    await relaying(parts, async (relay) => {
      await untilSent(parts, relay);
      expect(relay.status()).toMatchObject({ state: 'running', parked: 1 });
    });
    await expectHeldBack(parts, 'pay_9', 1);
  });

  test('is met at the same place by a start in the middle of the payment', async () => {
    const parts = await filled(3, 1);
    parts.store.damage(streamOf('pay_1'), 3, 'of a later version');
    // Past the first events of the payment, and before the one that cannot be read.
    const place = await positionOf(parts.store, 'pay_1', 1);
    const { checkpoint, kills } = killedPast(parts.checkpoint, place);
    await relaying(parts, () => until('killed', () => kills() > 1), { checkpoint });
    await relaying(parts, (relay) => untilSent(parts, relay));
    await expectHeldBack(parts, 'pay_1', 3);
  });

  test('a crash around it changes no number that was sent', async () => {
    const parts = await filled(4, 100);
    parts.store.damage(streamOf('pay_1'), 2, 'of a later version');
    // After everything that follows the held event has been sent, and before it is noted.
    const place = await positionOf(parts.store, 'pay_1', LIFE - 1);
    const { checkpoint, kills } = killedPast(parts.checkpoint, place);
    await relaying(parts, () => until('killed', () => kills() > 3), { checkpoint });
    parts.store.mend(streamOf('pay_1'));
    await relaying(parts, async (relay) => {
      await until('started', () => relay.status().checkpoint !== null);
      await untilWhole(parts, relay);
    });
  });
});

describe('the seals of the log', () => {
  test('are on a topic of their own, in order, and on no other', async () => {
    const parts = await filled(2);
    await appendSeals(parts.store, 3);
    await append(parts.store, 2, 3);
    await relaying(parts, async (relay) => {
      await untilSent(parts, relay);
      expect(relay.status().counts.published).toBe(3 * LIFE + 3);
    });
    const log = await logOf(parts.store);
    const sealsInLog = log.filter(({ stream }) => stream === SEALS_STREAM);
    const sent = parts.feed.stored('seals');
    expect(sent.map(({ key, partition }) => [key, partition])).toEqual(
      sealsInLog.map(() => ['log', 0]),
    );
    expect(sent.map(({ value }) => JSON.parse(value))).toMatchObject(
      sealsInLog.map(({ id, event, position, hash }, n) => ({
        id,
        source: '/log',
        type: `payments.${event.type}.v1`,
        sequence: String(n).padStart(10, '0'),
        globalposition: position,
        hash,
        data: event.data,
      })),
    );
    const ofPayments = log.filter(({ stream }) => stream !== SEALS_STREAM);
    expectWhole(parts.feed.stored('events'), ofPayments);
  });

  test('that were sent and not acknowledged are sent again, to the byte', async () => {
    const parts = await filled(1);
    await relaying(parts, (relay) => untilSent(parts, relay));
    await appendSeals(parts.store, 2);
    parts.feed.loseResponses(1);
    await relaying(parts, (relay) => untilSent(parts, relay));
    const sent = parts.feed.stored('seals').map(({ value }) => value);
    expect(sent).toHaveLength(3);
    expect(sent[1]).toBe(sent[0]);
  });

  test('a checkpoint of two topics goes on, whatever count the third topic has, and keeps it', async () => {
    const parts = await filled(1);
    await relaying(parts, (relay) => untilSent(parts, relay));
    const { text, version } = (await parts.checkpoint.load()) ?? { text: '', version: 0 };
    const ofTwo = text.replace(',"seals":1', '');
    expect(ofTwo).not.toBe(text);
    await parts.checkpoint.save(ofTwo, version);
    parts.feed.repartition({ seals: 3 });
    await appendSeals(parts.store, 1);
    await relaying(parts, (relay) => untilSent(parts, relay));
    expect(parts.feed.stored('events')).toHaveLength(LIFE);
    expect(parts.feed.stored('seals')).toMatchObject([{ partition: partitionOf('log', 3) }]);
    parts.feed.repartition({ seals: 2 });
    await relaying(parts, async (relay) => {
      await untilHalted(relay);
      expect(relay.status().error).toMatch(/the seals topic has 2 partitions and had 3/);
    });
  });
});

describe('one relay at a time', () => {
  test('a relay that may run no more stands by without an event; the other one takes over where it ended, and both show what is parked', async () => {
    const parts = openParts();
    const may = { first: true, second: false };
    await append(parts.store, 0, 3);
    parts.store.damage(streamOf('pay_1'), 2, 'of a later version');
    const waitsMs = { standBy: 1 };
    const check = async (first: Relay, second: Relay): Promise<void> => {
      await until('parked', () => first.status().parked === 1);
      await untilSent(parts, first);
      parts.store.mend(streamOf('pay_1'));
      Object.assign(may, { first: false, second: true });
      await until('standing by', () => first.status().state === 'standing-by');
      await until('sent', () => second.status().state === 'running');
      await until('seen', () => first.status().parked === 0);
      expect(second.status().parked).toBe(0);
      expect((await first.lag())?.events).toBe(0);
      expect(first.partitions()).toEqual(second.partitions());
      expect(parts.feed.stored('events')).toHaveLength(3 * LIFE);
      expectWhole(parts.feed.stored('events'), await logOf(parts.store));
    };
    await relaying(
      parts,
      (first) =>
        relaying(parts, (second) => check(first, second), { waitsMs, mayRun: () => may.second }),
      { waitsMs, mayRun: () => may.first },
    );
  });

  test('a start that the broker keeps waiting measures the lag from the stored checkpoint', async () => {
    const parts = await filled(3);
    await relaying(parts, (relay) => untilSent(parts, relay));
    parts.feed.down(true);
    await relaying(parts, async (relay) => {
      await until('several tries', () => relay.status().counts.restarts > 1);
      expect(relay.status().state).toBe('backing-off');
      expect((await relay.lag())?.events).toBe(0);
    });
  });

  test('a relay that was overtaken without noticing cannot save its checkpoint', async () => {
    const parts = await filled(1);
    const first = startOver(parts, { backOff: { minMs: 60_000, maxMs: 60_000 } });
    await untilSent(parts, first);
    const second = startOver(parts);
    await until('taken over', () => second.status().state === 'running');
    await append(parts.store, 1, 3);
    await until('it has noticed', () => first.status().error !== undefined);
    expect(first.status().error).toMatch(/another relay/);
    await untilSent(parts, second);
    await Promise.all([first.stop(), second.stop()]);
    expect(withoutRepeats(parts.feed.stored('events'))).toHaveLength(3 * LIFE);
    expectWhole(parts.feed.stored('events'), await logOf(parts.store));
  });
});
