/**
 * A cluster that has no leader for a while (docs/eventstoredb.md): nothing is charged and nothing is lost,
 * each request ends in its budget, readiness names the store, and all goes on by itself. The whole service
 * in one process, as a client of a cluster.
 */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startStandIn } from '../support/eventstoredb-stand-in.ts';
import { shareOf } from '../support/long-run-share.ts';
import { settingsAt } from '../support/server-service.ts';
import { idOf, openInProcess } from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

const AWAY_SECONDS = shareOf([1, 10, 60], 1);

const standIn = await startStandIn();
const service = await openInProcess(settingsAt(standIn.clusterUrl));
const unhandled: unknown[] = [];
process.on('unhandledRejection', (error) => unhandled.push(error));
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await standIn.close();
});

const readiness = async () => {
  const { status, json } = await service.ask('GET', '/health/ready', undefined, { token: null });
  return { status, state: (json.engines as { eventStore: { state: string } }).eventStore.state };
};

describe.each(AWAY_SECONDS)('without a leader for %i s', (seconds) => {
  let paymentId: string;
  let during: { status: number; error: unknown }[] = [];

  beforeAll(
    async () => {
      paymentId = idOf(await service.create({ captureNow: true }));
      await until(
        'it is in the read models',
        async () => (await service.get(paymentId)).status === 200,
      );
      const from = performance.now();
      standIn.elect(true);
      await until('readiness names the store', async () => (await readiness()).state === 'down');
      do {
        const [created, read] = await Promise.all([
          service.create({ captureNow: true }, { key: `away-${seconds}` }),
          service.get(paymentId),
        ]);
        during = [...during, { status: created.status, error: created.json.error }];
        expect(read).toMatchObject({ status: 200, json: { status: 'CAPTURED' } });
      } while (performance.now() - from < seconds * 1000);
      standIn.elect(false);
      // The time away and as much again for what a busy machine adds, and for the start.
    },
    30_000 + 2_000 * seconds,
  );

  test('POSTs are 503 SERVICE_UNAVAILABLE, and GETs the last known document', () => {
    const away = { status: 503, error: 'SERVICE_UNAVAILABLE' };
    expect(during).toEqual(during.map(() => away));
    expect(during.length).toBeGreaterThan(0);
  });

  test('a leader ends it, without a start and without a second charge', async () => {
    await until('it is ready', async () => (await readiness()).status === 200);
    const repeats = await Promise.all(
      ['first', 'second'].map(() =>
        service.create({ captureNow: true }, { key: `away-${seconds}` }),
      ),
    );
    expect(repeats.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set(repeats.map(idOf)).size).toBe(1);
    expect(unhandled).toEqual([]);
  });
});
