/** What the relay parks beside an event that cannot be read, and how many payments it may park. */
import { describe, expect, test } from '@jest/globals';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import {
  checkpointAtStart,
  noteParked,
  noteSent,
  PARKED_MAX,
  parseCheckpoint,
  type RelayCheckpoint,
} from '../../topics/checkpoint.ts';
import { expectWhole } from '../support/feed-checks.ts';
import { largestCreated } from '../support/largest-payment.ts';
import { appendLife } from '../support/many-payments.ts';
import type { MemoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, authorized, newEvent, wholeLife } from '../support/payment-events.ts';
import { logOf, openParts, relaying, untilRunning, untilSent } from '../support/relaying.ts';
import { until } from '../support/until.ts';

/** A payment whose messages are some 300 kB; any other's are below 3 kB. */
const appendLarge = async (store: MemoryEventStore, paymentId: string): Promise<void> => {
  const events = [largestCreated(paymentId), authorized({ amount: 99_999_999 })];
  await appendPayment(store, paymentId, events);
};
const others = (events: RecordedEvent[], paymentId: string): RecordedEvent[] =>
  events.filter(({ stream }) => stream !== streamOf(paymentId));

describe('a message that the broker does not take for its size', () => {
  test('parks its own payment, and the messages of all others go on', async () => {
    const parts = openParts(1_000);
    for (let n = 0; n < 20; n += 1) await appendLife(parts.store, `pay_${n}`);
    await appendLarge(parts.store, 'pay_large');
    for (let n = 20; n < 40; n += 1) await appendLife(parts.store, `pay_${n}`);
    parts.feed.takeAtMost(100_000);
    await relaying(parts, async (relay) => {
      await untilSent(parts, relay);
      expect(relay.status()).toMatchObject({ state: 'running', parked: 1 });
      await appendLife(parts.store, 'pay_40');
      await untilSent(parts, relay);
      expect(relay.status().counts.restarts).toBe(0);
    });
    const sent = others(await logOf(parts.store), 'pay_large');
    expectWhole(parts.feed.stored('events'), sent);
  });

  test('the same with a lost acknowledgement in the middle: no number is used twice', async () => {
    const parts = openParts(1_000);
    for (let n = 0; n < 10; n += 1) await appendLife(parts.store, `pay_${n}`);
    await appendLarge(parts.store, 'pay_large');
    for (let n = 10; n < 20; n += 1) await appendLife(parts.store, `pay_${n}`);
    parts.feed.takeAtMost(100_000);
    parts.feed.loseResponses(5, 40, 3, 200, 7);
    await relaying(parts, (relay) => untilSent(parts, relay));
    expectWhole(parts.feed.stored('events'), others(await logOf(parts.store), 'pay_large'));
  });

  test('messages that are too large only together are sent apart, and none is parked', async () => {
    const parts = openParts(1_000);
    for (let n = 0; n < 30; n += 1) await appendLife(parts.store, `pay_${n}`);
    parts.feed.takeAtMost(5_000);
    await relaying(parts, async (relay) => {
      await untilSent(parts, relay);
      expect(relay.status().parked).toBe(0);
    });
    expectWhole(parts.feed.stored('events'), await logOf(parts.store));
  });

  test('a later start sends what was left out, once the broker takes it', async () => {
    const parts = openParts(1_000);
    await appendLife(parts.store, 'pay_1');
    await appendLarge(parts.store, 'pay_large');
    parts.feed.takeAtMost(100_000);
    await relaying(parts, (relay) => untilSent(parts, relay));
    await relaying(parts, async (relay) => {
      await untilRunning(relay);
      expect(relay.status().parked).toBe(1);
    });
    // The reason of a retry is that of the broker.
    await relaying(parts, async (relay) => {
      const retried = () => relay.retryParked('pay_large').catch(() => []);
      await until('it takes requests', async () => (await retried()).length === 1);
      const reason = 'the broker takes no message of that size';
      expect(await retried()).toEqual([{ paymentId: 'pay_large', sent: false, at: 0, reason }]);
      expect((await relay.parked()).pay_large).toMatchObject({ from: 0, reason });
    });
    // Each of the two is taken, and both together are not.
    parts.feed.takeAtMost(500_000);
    await relaying(parts, (relay) =>
      until(
        'nothing is parked',
        () => relay.status().parked === 0 && relay.status().state === 'running',
      ),
    );
    expectWhole(parts.feed.stored('events'), await logOf(parts.store));
  });
});

type Note = RelayCheckpoint['parked'][string];

describe('how many payments may be parked', () => {
  test('more than a thousand payments parked do not stop the relay', async () => {
    const parts = openParts(1_000);
    const damaged = 1_050;
    for (let n = 0; n < damaged; n += 1) {
      const event = newEvent(wholeLife(`pay_${n}`)[0] ?? authorized());
      await parts.store.append(streamOf(`pay_${n}`), 'none', [event]);
      parts.store.damage(streamOf(`pay_${n}`), 0, 'of a later version');
    }
    await appendLife(parts.store, 'pay_whole');
    await relaying(parts, async (relay) => {
      await untilSent(parts, relay);
      expect(relay.status()).toMatchObject({ state: 'running', parked: damaged });
    });
    expect(parts.feed.stored('events').map(({ key }) => key)).toEqual(
      Array.from({ length: 6 }, () => 'pay_whole'),
    );
  });

  test('their notes are bounded: the checkpoint stays a third of what MongoDB takes', () => {
    const checkpoint = checkpointAtStart({ events: 6, state: 6, seals: 1 });
    const event = { revision: 1_999 };
    const idOf = (n: number) => `pay_${String(n).padStart(28, '0')}`;
    noteParked(checkpoint, idOf(0), event, 'é'.repeat(500));
    // Copies of its note, and the last one by noteParked: it counts all notes each time.
    for (let n = 1; n < PARKED_MAX - 1; n += 1)
      checkpoint.parked[idOf(n)] = { ...(checkpoint.parked[idOf(0)] as Note) };
    noteParked(checkpoint, idOf(PARKED_MAX - 1), event, 'é'.repeat(500));
    const text = JSON.stringify(checkpoint);
    expect(Buffer.byteLength(text)).toBeLessThan((16 * 1024 * 1024) / 2);
    expect(() => noteParked(checkpoint, 'pay_one', event, 'too many')).toThrow(/too many$/);
    expect(Object.keys(parseCheckpoint(text).parked)).toHaveLength(PARKED_MAX);
    const first = idOf(0);
    noteParked(checkpoint, first, { revision: 2_000 }, 'an event before it is parked');
    expect(checkpoint.parked[first]).toMatchObject({ from: 1_999, to: 2_000 });
    noteSent(checkpoint, first, { revision: 1_999 });
    expect(checkpoint.parked[first]).toMatchObject({ from: 2_000, to: 2_000 });
  });
});
