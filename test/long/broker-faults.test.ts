/**
 * The relay and a real broker of its own that is stopped, frozen, killed and started again while
 * payments go on (P3): no event is missing or out of order, and appends never wait for it.
 */

import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { kafkaFeed } from '../../projector/event-feed/kafka.ts';
import { fileDocument } from '../../projector/relay/checkpoint/file.ts';
import { type Relay, startRelay } from '../../projector/relay/relay.ts';
import { kafka } from '../../scripts/engine-kafka.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { eventsOf, writePayment } from '../support/consumer-example.ts';
import { expectWhole, parsed } from '../support/feed-checks.ts';
import { countMessages, readTopic } from '../support/feed-drivers.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const skip = kafka.available();
const suite = skip === undefined ? describe : describe.skip;
const PAUSE_MS = 10;

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const untilTrouble = (relay: Relay): Promise<void> =>
  until('it shows', () => relay.status().state === 'backing-off', 60_000);

suite(`a broker that comes and goes${skip ? ` (skipped: ${skip})` : ''}`, () => {
  test('stopped, frozen and killed mid-stream: nothing is missing, nothing waits', async () => {
    const folder = temporaryFolder();
    const brokerFolder = join(folder.path, 'kafka');
    const first = await kafka.start(brokerFolder, () => undefined);
    const brokers = first.value;
    let { pid } = first;
    const store = await openSqliteEventStore({ file: join(folder.path, 'events.db') });
    const relay = startRelay({
      store,
      feed: kafkaFeed({ brokers: [brokers], topicPrefix: 'test', timeoutsMs: { send: 8_000 } }),
      checkpoint: fileDocument(join(folder.path, 'feed-checkpoint.json')),
      logger: silent,
      backOff: { minMs: 50, maxMs: 500 },
      waitsMs: { silence: 1_000 },
    });

    const writing = { on: true, payments: 0, slowestMs: 0 };
    const write = async (): Promise<void> => {
      while (writing.on) {
        const startedAtMs = performance.now();
        await writePayment(store, `pay_${writing.payments}`);
        writing.slowestMs = Math.max(writing.slowestMs, performance.now() - startedAtMs);
        writing.payments += 1;
        await delay(PAUSE_MS);
      }
    };
    const moves = async (): Promise<void> => {
      const { published } = relay.status().counts;
      await until('it sends', () => relay.status().counts.published > published + 20, 120_000);
      await until('it runs', () => relay.status().state === 'running', 60_000);
    };
    const restart = async (): Promise<void> => {
      ({ pid } = await kafka.start(brokerFolder, () => undefined));
    };

    const writer = write();
    try {
      await moves();
      process.kill(pid, 'SIGTERM');
      await until('it has ended', () => !isAlive(pid), 60_000);
      await untilTrouble(relay);
      await restart();
      await moves();

      process.kill(pid, 'SIGSTOP');
      await untilTrouble(relay);
      const before = writing.payments;
      // Long enough for a send to be given up, and for another client to try.
      await delay(12_000);
      expect(writing.payments).toBeGreaterThan(before + 5);
      expect((await relay.lag())?.events).toBeGreaterThan(20);
      process.kill(pid, 'SIGCONT');
      await moves();

      process.kill(pid, 'SIGKILL');
      await untilTrouble(relay);
      await restart();
      await moves();

      writing.on = false;
      await writer;
      const log = await eventsOf(store);
      await until('all is sent', async () => (await relay.lag())?.events === 0, 60_000);
      const readAll = async (topic: string) =>
        readTopic([brokers], topic, await countMessages([brokers], topic), 120_000);
      const events = await readAll('test.events.v1');
      expectWhole(events, log);
      const states = parsed(await readAll('test.state.v1'));
      const latest = new Map(states.map(({ subject, sequence }) => [subject, sequence]));
      expect(latest.size).toBe(writing.payments);
      expect([...new Set(latest.values())]).toEqual(['0000000005']);
      // Of 5 s that a send would have held it up.
      expect(writing.slowestMs).toBeLessThan(5_000);
      process.stderr.write(
        `broker faults: ${log.length} events, ${events.length - log.length} sent twice, 0 missing; slowest payment ${Math.round(writing.slowestMs)} ms\n`,
      );
    } finally {
      writing.on = false;
      await writer;
      process.kill(pid, 'SIGCONT');
      const startedAtMs = performance.now();
      await relay.stop();
      expect(performance.now() - startedAtMs).toBeLessThan(6_000);
      await store.close();
      process.kill(pid, 'SIGKILL');
      folder.remove();
    }
  }, 600_000);
});
