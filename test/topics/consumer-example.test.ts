/** examples/consumer.ts, as its own process, reads each event of a real broker once, some of them sent twice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { kafka } from '../../tools/engines/kafka.ts';
import { kafkaFeed } from '../../topics/kafka/kafka.ts';
import { type EventFeed, FeedUnavailable } from '../../topics/port.ts';
import { startRelay } from '../../topics/relay.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { expectWhole } from '../support/feed-checks.ts';
import { kafkaFeedDriver } from '../support/feed-drivers.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { appendLives, eventsOf, LIFE } from '../support/many-payments.ts';
import { NODE, ROOT } from '../support/service-processes.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

/** So many payments, a hundred at once. */
const writePayments = async (store: EventStore, payments: number): Promise<void> => {
  for (let from = 0; from < payments; from += 100) {
    const count = Math.min(100, payments - from);
    const ids = Array.from({ length: count }, (_, n) => `pay_${from + n}`);
    await appendLives(store, ids);
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
const expectExampleToRead = async (brokers: string, payments: number, ending: NodeJS.Signals) => {
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
    const partitionsequence = String(Number(last?.partitionsequence ?? 0) + 2);
    const value = JSON.stringify({ ...last, id: 'a later one', partitionsequence });
    const raw = kafkaFeed({ brokers: [brokers], topicPrefix });
    await raw.publish('events', [
      { topic: 'events', partition: 0, key: 'k', value, headers: {}, timestampMs: 0 },
    ]);
    await raw.close();
    expect(await consumer.exited).toBe(3);
    expect(consumer.said()).toMatch(/is missing/);
  } finally {
    consumer?.kill('SIGKILL');
    await relay.stop();
    await store.close();
    folder.remove();
  }
};

describeUnless(kafkaFeedDriver.skip, 'the example of a reader', () => {
  test('reads each event once, resumes where it was, and notices a gap', async () => {
    const brokers = String(process.env.KAFKA_BROKERS);
    await expectExampleToRead(brokers, 20, 'SIGTERM');
  });
});

describeUnless(kafka.available(), 'the example of a reader, 10,000 events', () => {
  testOfLongRun('counts each once, over lost responses and a kill -9', async () => {
    using folder = temporaryFolder();
    const { variables, pid } = await kafka.start(folder.path, () => undefined);
    try {
      await expectExampleToRead(variables.KAFKA_BROKERS ?? '', 1_700, 'SIGKILL');
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  });
});
