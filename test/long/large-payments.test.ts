/**
 * A5: A thousand payments with as many operations as they may have, beside small ones, in a service
 * with the heap that a container of 512 MiB gives it: the small ones do not notice, and memory is bounded.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { refundsOfOneCent } from '../support/largest-payment.ts';
import { created, newEvent } from '../support/payment-events.ts';
import { type Service, startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { FILLED_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const LARGE = 1_000;
const OPERATIONS = 1_000;
const ROUNDS = 400;
const AT_ONCE = 4;
/** What Node gives itself where 512 MiB are all there is. */
const HEAP_MIB = 256;
const RSS_MIB_MAX = 512;

const idOf = (n: number): string => `pay_LARGE${String(n).padStart(21, '0')}`;
const folder = temporaryFolder();
let service: Service;

/** Appended at the event store's own port: a million commands over HTTP would take too long. */
const fill = async (): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(folder.path, 'events.sqlite') });
  for (let n = 0; n < LARGE; n += 1) {
    const first = created({
      paymentId: idOf(n),
      merchantId: 'm_demo',
      captureNow: true,
      amount: 99_999_999,
    });
    const events = refundsOfOneCent(first, OPERATIONS).map((event) => newEvent(event));
    await store.append(streamOf(idOf(n)), 'none', events);
  }
  await store.close();
};

const isCaughtUp = async (): Promise<boolean> => {
  const response = await fetch(`${service.url}/health/ready`);
  const { engines } = (await response.json()) as { engines: { readModels: { caughtUp: boolean } } };
  return engines.readModels.caughtUp;
};

beforeAll(async () => {
  await fill();
  service = await startService({
    dataDir: folder.path,
    env: {
      NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}`,
      RECONCILE_INTERVAL_MS: '0',
      VERIFY_INTERVAL_MS: '0',
    },
  });
  await until('the read models have caught up', isCaughtUp, FILLED_MS_MAX);
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  folder.remove();
});

const PAYMENTS = '/api/v1/payments';

/** How long each create and GET of a small payment took, in milliseconds, `AT_ONCE` at a time. */
const smallPayments = async (): Promise<number[]> => {
  const took: number[] = [];
  const timed = async (step: () => Promise<{ status: number }>): Promise<void> => {
    const began = performance.now();
    expect((await step()).status).toBe(200);
    took.push(performance.now() - began);
  };
  const one = async (): Promise<void> => {
    for (let n = 0; n < ROUNDS / AT_ONCE; n += 1) {
      let id = '';
      await timed(async () => {
        const response = await service.post(PAYMENTS, payment);
        id = response.json.paymentId;
        return response;
      });
      await timed(() => service.get(`${PAYMENTS}/${id}`));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
  return took;
};

const p99 = (took: number[]): number =>
  took.sort((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? Number.NaN;

const rssMib = (): number => {
  const status = readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8').trim();
  const pid = status === '' ? service.pid : Number(status.split(' ')[0]);
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
};

/** One after the other, as a merchant goes through its payments: read, then a refund that is rejected. */
const largePayments = async (isOver: () => boolean): Promise<number> => {
  let requests = 0;
  for (let n = 0; !isOver(); n = (n + 1) % LARGE) {
    const path = `${PAYMENTS}/${idOf(n)}`;
    const found = await service.get(path);
    expect([found.status, found.json.transactions.length]).toEqual([200, OPERATIONS]);
    const rejected = await service.post(`${path}/refund`, { refundAmount: 1 });
    expect([rejected.status, rejected.json.details]).toEqual([
      422,
      [`the payment has reached ${OPERATIONS} operations`],
    ]);
    requests += 2;
  }
  return requests;
};

test('small payments are served within twice their time beside a thousand large ones', async () => {
  await smallPayments();
  const alone = p99(await smallPayments());
  let over = false;
  const large = largePayments(() => over);
  const beside = p99(await smallPayments());
  over = true;
  const requests = await large;
  const rss = rssMib();
  process.stderr.write(
    `large payments: p99 of small ones ${alone.toFixed(1)} ms alone, ${beside.toFixed(1)} ms beside ${requests} requests for large ones; RSS ${rss.toFixed(0)} MiB at most\n`,
  );
  expect(rss).toBeLessThan(RSS_MIB_MAX);
  expect(beside).toBeLessThan(alone * 2);
});
