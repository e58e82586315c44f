/** Runs examples/consumer.ts as its own process against a real broker, and relays to it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from '@jest/globals';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { kafkaFeed } from '../../topics/kafka/kafka.ts';
import { type EventFeed, FeedUnavailable } from '../../topics/port.ts';
import { startRelay } from '../../topics/relay.ts';
import { expectWhole } from './feed-checks.ts';
import { appendLives, eventsOf, LIFE } from './many-payments.ts';
import { NODE, ROOT } from './service-processes.ts';
import { silent } from './silent-log.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

/** So many payments, a hundred at once. */
const writePayments = async (store: EventStore, payments: number): Promise<void> => {
  for (let from = 0; from < payments; from += 100) {
    const count = Math.min(100, payments - from);
    await appendLives(
      store,
      Array.from({ length: count }, (_, n) => `pay_${from + n}`),
    );
  }
};

/** The feed, but of the second send and every third after it the answer is lost. */
const forgetful = (feed: EventFeed): EventFeed => {
  let sends = 0;
  return {
    ...feed,
    publish: async (topic, messages) => {
      await feed.publish(topic, messages);
      sends += 1;
      if (sends % 3 === 2) throw new FeedUnavailable('the answer was lost');
    },
  };
};

type Consumed = { partition: number; event: { id: string; partitionsequence: string } };

const startConsumer = (brokers: string, file: string, topic: string) => {
  const child = spawn(NODE, [join(ROOT, 'examples/consumer.ts'), brokers, file, topic], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exited = once(child, 'close').then(([code]) => code as number | null);
  return { kill: (signal: NodeJS.Signals) => child.kill(signal), exited, said: () => said };
};

/** What the example has written so far, whole lines only. */
const consumed = (file: string): Consumed[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
    : [];

/** Waits for so many lines; looks seldom, for the file is read whole. */
const untilRead = (file: string, count: number): Promise<void> =>
  until(`${count} events are read`, async () => {
    await delay(50);
    return consumed(file).length >= count;
  });

/**
 * Relays so many payments over a feed that loses answers, while the example reads, is ended once
 * half-way and started again. Expects each event once, and that a message that skips a number ends it.
 */
export const expectExampleToRead = async (
  brokers: string,
  payments: number,
  ending: NodeJS.Signals,
) => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'events.jsonl');
  const topicPrefix = `test-${crypto.randomUUID()}`;
  const topic = `${topicPrefix}.events.v1`;
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.db') });
  const feed = kafkaFeed({ brokers: [brokers], topicPrefix });
  const relay = startRelay({
    store,
    feed: forgetful(feed),
    checkpoint: fileDocument(join(folder.path, 'relay-checkpoint.json')),
    logger: silent,
    mayRun: () => true,
    backOff: { minMs: 1, maxMs: 20 },
  });
  let consumer: ReturnType<typeof startConsumer> | undefined;
  try {
    await until('the topics are there', () => relay.partitions() !== undefined);
    consumer = startConsumer(brokers, file, topic);
    await writePayments(store, payments);
    const total = payments * LIFE;
    await untilRead(file, total / 2);
    consumer.kill(ending);
    await consumer.exited;
    consumer = startConsumer(brokers, file, topic);
    await untilRead(file, total);
    const read = consumed(file);
    expect(read).toHaveLength(total);
    expectWhole(
      read.map(({ partition, event }) => ({ partition, value: JSON.stringify(event) })),
      await eventsOf(store),
    );
    expect(relay.status().counts.restarts).toBeGreaterThan(0);
    await relay.stop();
    const last = read.findLast(({ partition }) => partition === 0)?.event;
    const skipping = {
      ...last,
      id: 'a later one',
      partitionsequence: String(Number(last?.partitionsequence ?? 0) + 2),
    };
    const raw = kafkaFeed({ brokers: [brokers], topicPrefix });
    const value = JSON.stringify(skipping);
    await raw.publish('events', [
      { topic: 'events', partition: 0, key: 'k', value, headers: {}, timestampMs: 0 },
    ]);
    await raw.close();
    expect([await consumer.exited, consumer.said()]).toEqual([
      3,
      expect.stringMatching(/is missing/),
    ]);
  } finally {
    consumer?.kill('SIGKILL');
    await relay.stop();
    await store.close();
    folder.remove();
  }
};
