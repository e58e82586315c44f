/**
 * P3: the relay and a real broker that is stopped, frozen, killed and started again while payments
 * go on. No event is missing or out of order, and no append waits for the broker.
 */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { kafka } from '../../tools/engines/kafka.ts';
import { kafkaFeed } from '../../topics/kafka/kafka.ts';
import { type Relay, startRelay } from '../../topics/relay.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { expectWhole, parsed } from '../support/feed-checks.ts';
import { countMessages, readTopic } from '../support/feed-drivers.ts';
import { appendLives, eventsOf } from '../support/many-payments.ts';
import { silent } from '../support/silent-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { STOP_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const skip = kafka.available();
const PAUSE_MS = 10;
/** How long one send may take before the relay gives it up. */
const SEND_MS_MAX = 8_000;

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

const untilBackingOff = (relay: Relay): Promise<void> =>
  until('the relay backs off', () => relay.status().state === 'backing-off');

describeUnless(skip, 'relay and broker', () => {
  test('P3: a broker stopped, frozen and killed mid-stream: no event is missing, no append waits', async () => {
    const folder = temporaryFolder();
    const brokerFolder = join(folder.path, 'kafka');
    const first = await kafka.start(brokerFolder, () => undefined);
    const brokers = first.variables.KAFKA_BROKERS ?? '';
    let { pid } = first;
    const store = await openSqliteEventStore({ file: join(folder.path, 'events.db') });
    const relay = startRelay({
      store,
      feed: kafkaFeed({
        brokers: [brokers],
        topicPrefix: 'test',
        timeoutsMs: { send: SEND_MS_MAX },
      }),
      checkpoint: fileDocument(join(folder.path, 'relay-checkpoint.json')),
      logger: silent,
      mayRun: () => true,
      backOff: { minMs: 50, maxMs: 500 },
      waitsMs: { silence: 1_000 },
    });

    const writing = { on: true, payments: 0, slowestMs: 0 };
    const write = async (): Promise<void> => {
      while (writing.on) {
        const startedAtMs = performance.now();
        await appendLives(store, [`pay_${writing.payments}`]);
        writing.slowestMs = Math.max(writing.slowestMs, performance.now() - startedAtMs);
        writing.payments += 1;
        await delay(PAUSE_MS);
      }
    };
    const moves = async (): Promise<void> => {
      const { published } = relay.status().counts;
      await until('the relay sends', () => relay.status().counts.published > published + 20);
      await until('the relay runs', () => relay.status().state === 'running');
    };
    const restart = async (): Promise<void> => {
      ({ pid } = await kafka.start(brokerFolder, () => undefined));
    };

    const writer = write();
    try {
      await moves();
      process.kill(pid, 'SIGTERM');
      await until('the broker has ended', () => !isAlive(pid));
      await untilBackingOff(relay);
      await restart();
      await moves();

      process.kill(pid, 'SIGSTOP');
      await untilBackingOff(relay);
      const before = writing.payments;
      const { restarts } = relay.status().counts;
      await until(
        'the next client has failed too',
        () => relay.status().counts.restarts > restarts,
      );
      await until('payments go on', () => writing.payments > before + 5);
      await until('events wait', async () => ((await relay.lag())?.events ?? 0) > 20);
      process.kill(pid, 'SIGCONT');
      await moves();

      process.kill(pid, 'SIGKILL');
      await untilBackingOff(relay);
      await restart();
      await moves();

      writing.on = false;
      await writer;
      const log = await eventsOf(store);
      await until('every event is sent', async () => (await relay.lag())?.events === 0);
      const readAll = async (topic: string) =>
        readTopic([brokers], topic, await countMessages([brokers], topic));
      const events = await readAll('test.events.v1');
      expectWhole(events, log);
      const states = parsed(await readAll('test.state.v1'));
      const latest = new Map(states.map(({ subject, sequence }) => [subject, sequence]));
      expect(latest.size).toBe(writing.payments);
      expect([...new Set(latest.values())]).toEqual(['0000000005']);
      // A payment that waited for a send would have taken as long as a send that is given up.
      expect(writing.slowestMs).toBeLessThan(SEND_MS_MAX);
      process.stderr.write(
        `broker faults: ${log.length} events, ${events.length - log.length} sent twice, 0 missing; slowest payment ${Math.round(writing.slowestMs)} ms\n`,
      );
    } finally {
      writing.on = false;
      await writer;
      process.kill(pid, 'SIGCONT');
      const stoppingAtMs = performance.now();
      await relay.stop();
      expect(performance.now() - stoppingAtMs).toBeLessThan(STOP_MS_MAX);
      await store.close();
      process.kill(pid, 'SIGKILL');
      folder.remove();
    }
  });
});
