/** The promises of topics/port.ts, asked of one driver. */
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { partitionOf } from '../../topics/messages.ts';
import {
  type EventFeed,
  type FeedMessage,
  MessageTooLarge,
  type Topic,
} from '../../topics/port.ts';
import { describeDriver } from '../support/describe-driver.ts';
import type { FeedDriver, FeedUnderTest } from '../support/feed-drivers.ts';

// A new consumer group takes a broker some seconds.
const message = (topic: Topic, key: string, n: number): FeedMessage => ({
  topic,
  partition: partitionOf(key, 6),
  key,
  value: JSON.stringify({ n, text: 'é \u{1F4B3} "quoted" \u2028 \\' }),
  headers: { 'content-type': 'application/cloudevents+json', ce_id: `${key}-${n}` },
  timestampMs: Date.UTC(2026, 0, 1) + n,
});
const byPartition = (messages: { partition: number; value: string }[]) =>
  [0, 1, 2, 3, 4, 5].map((number) =>
    messages.filter(({ partition }) => partition === number).map(({ value }) => value),
  );

export const describeEventFeed = (driver: FeedDriver): void =>
  describeDriver('event feed', driver, () => {
    let made: FeedUnderTest;
    let feed: EventFeed;
    beforeEach(async () => {
      made = await driver.make();
      feed = made.open();
    });
    afterEach(async () => {
      await feed.close();
      await made.remove();
    });

    test('makes the topics where they are missing, and finds them again', async () => {
      expect(await feed.partitions()).toEqual({ events: 6, state: 6, seals: 1 });
      expect(await feed.partitions()).toEqual({ events: 6, state: 6, seals: 1 });
      await feed.close();
      feed = made.open();
      expect(await feed.partitions()).toEqual({ events: 6, state: 6, seals: 1 });
    });

    test('stores key, headers, time and value to the byte, in order in each partition', async () => {
      await feed.partitions();
      const sent = Array.from({ length: 200 }, (_, n) => message('events', `pay_${n % 17}`, n));
      await feed.publish('events', sent.slice(0, 120));
      await feed.publish('events', sent.slice(120));
      const state = [message('state', 'pay_1', 1), message('state', 'pay_1', 2)];
      await feed.publish('state', state);
      const stored = await made.read('events', sent.length);
      expect(stored).toHaveLength(sent.length);
      expect(byPartition(stored)).toEqual(byPartition(sent));
      const { topic: _, ...first } = message('events', 'pay_3', 3);
      expect(stored.find(({ headers }) => headers.ce_id === 'pay_3-3')).toMatchObject(first);
      expect((await made.read('state', 2)).map(({ value }) => value)).toEqual(
        state.map(({ value }) => value),
      );
    });

    test('stores the seals, which are of no payment, in order in the one partition of their topic', async () => {
      const { seals } = await feed.partitions();
      const sent = [1, 2, 3].map((n) => ({
        ...message('seals', 'log', n),
        partition: partitionOf('log', seals),
      }));
      await feed.publish('seals', sent);
      const stored = await made.read('seals', 3);
      expect(stored.map(({ partition, key, value }) => [partition, key, value])).toEqual(
        sent.map(({ value }) => [0, 'log', value]),
      );
    });

    test('a feed opened anew adds to what is there; the same messages may be there twice', async () => {
      await feed.partitions();
      await feed.publish('events', [message('events', 'pay_1', 1)]);
      await feed.close();
      feed = made.open();
      await feed.publish('events', [message('events', 'pay_1', 1), message('events', 'pay_1', 2)]);
      const stored = await made.read('events', 3);
      expect(stored.map(({ headers }) => headers.ce_id)).toEqual(['pay_1-1', 'pay_1-1', 'pay_1-2']);
    });

    test('behind a message of a feed that has overtaken it, a feed stores nothing more', async () => {
      const [older, newer] = [feed, made.open()];
      try {
        await older.partitions();
        await older.overtake();
        await older.publish('state', [message('state', 'pay_1', 1)]);
        await newer.overtake();
        // Nothing newer is there yet, so this is no older state behind a newer one.
        await older.publish('state', [message('state', 'pay_1', 2)]);
        await newer.publish('state', [message('state', 'pay_1', 3)]);
        const late = older.publish('state', [message('state', 'pay_1', 2)]);
        await expect(late).rejects.toThrow(/another (feed|projector) has/);
        await newer.publish('state', [message('state', 'pay_1', 4)]);
        const stored = await made.read('state', 4);
        expect(stored.map(({ headers }) => headers.ce_id)).toEqual(
          [1, 2, 3, 4].map((n) => `pay_1-${n}`),
        );
      } finally {
        await newer.close();
      }
    });

    test('of a partition with a message that is too large nothing is stored, and sent apart the others are', async () => {
      await feed.partitions();
      const [before, after] = [message('events', 'pay_1', 1), message('events', 'pay_1', 3)];
      const large = { ...message('events', 'pay_1', 2), value: 'x'.repeat(1_200_000) };
      const sent = feed.publish('events', [before, large, after]);
      await expect(sent).rejects.toThrow(MessageTooLarge);
      await expect(feed.publish('events', [large])).rejects.toThrow(MessageTooLarge);
      await feed.publish('events', [before, after]);
      const stored = await made.read('events', 2);
      expect(stored.map(({ headers }) => headers.ce_id)).toEqual(['pay_1-1', 'pay_1-3']);
    });

    test('topics that are there are left as they are', async () => {
      if (made.makeTopic === undefined) {
        expect(await feed.partitions()).toEqual({ events: 6, state: 6, seals: 1 });
        return;
      }
      await made.makeTopic('events', 3);
      expect(await feed.partitions()).toEqual({ events: 3, state: 6, seals: 1 });
    });
  });
