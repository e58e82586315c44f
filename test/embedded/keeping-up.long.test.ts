/**
 * Keeping up: webhooks of one merchant at 50 payments a second, to receivers that take their time, and
 * commands beside a projector that stands still. Prints the figures of docs/performance.md.
 */
import { loadavg } from 'node:os';
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { paced } from '../support/paced-load.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  standInEventStore,
  standInMongo,
  startService,
  startThreeProcesses,
} from '../support/service-processes.ts';
import { FOLLOWED_MS_MAX, SLOWER_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import { ALLOW_LOOPBACK, type Merchant, register, request } from '../support/webhook-merchant.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const PER_SECOND = 50;
const PAYMENTS = 1_000;

const report = (line: string): void => {
  process.stderr.write(`${line} (load of the machine ${loadavg()[0]?.toFixed(1)})\n`);
};

const sell = async (merchant: Merchant): Promise<string | undefined> => {
  const { status, text } = await request(merchant, 'POST', '/api/v1/payments', {
    ...payment,
    merchantReference: undefined,
    captureNow: true,
  });
  return status === 200 ? undefined : text;
};

test.each([100, 300])(
  `a receiver that takes %i ms has the webhooks of ${PER_SECOND} payments a second within 10 s of the last`,
  async (responseMs) => {
    await using receiver = await startReceiver();
    await using service = await startService({ env: { ...ALLOW_LOOPBACK, LOG_LEVEL: 'warn' } });
    const token = await service.token('m_big', 'payments:read payments:write webhooks:write');
    const merchant = { url: service.url, token };
    receiver.respond = (_received, response) =>
      void setTimeout(() => response.writeHead(204).end(), responseMs);
    await register(merchant, receiver.url);
    const arrived = () => new Set(receiver.received.map(({ id }) => id)).size;
    const fromMs = performance.now();
    using work = paced(PER_SECOND, () => sell(merchant));
    await work.atLeast(PAYMENTS);
    await work.end();
    const endMs = performance.now();
    const left = work.done() - arrived();
    await until('each has arrived', () => arrived() === work.done());
    const caughtUpMs = performance.now() - endMs;
    report(
      `receiver of ${responseMs} ms: ${work.done()} payments, ${Math.round((work.done() / (endMs - fromMs)) * 1000)} a second, ${left} webhooks left at the end, all there ${Math.round(caughtUpMs)} ms later`,
    );
    expect(work.wrong).toEqual([]);
    expect(caughtUpMs).toBeLessThan(FOLLOWED_MS_MAX);
  },
);

const POSTS = 1_000;

/** Of so many creates one after the other. */
const p99Of = async (merchant: Merchant): Promise<number> => {
  const tookMs: number[] = [];
  while (tookMs.length < POSTS) {
    const fromMs = performance.now();
    expect(await sell(merchant)).toBeUndefined();
    tookMs.push(performance.now() - fromMs);
  }
  return tookMs.toSorted((a, b) => a - b)[Math.floor(POSTS * 0.99)] ?? Number.NaN;
};

test(`a projector that stands still makes no create slower: p99 within ${SLOWER_MS_MAX} ms of what it was`, async () => {
  await using eventStore = await standInEventStore();
  await using readStore = await standInMongo();
  await using three = await startThreeProcesses({
    EVENTSTOREDB_URL: eventStore.url,
    MONGODB_URL: readStore.url,
  });
  const [projector] = three.processes.projector;
  const token = await signToken({ merchant_id: 'm_big', sub: 'tester' }, three.env.JWT_SECRET);
  const merchant = { url: three.url, token };
  await p99Of(merchant);
  const beforeMs = await p99Of(merchant);
  projector?.kill('SIGSTOP');
  const stillMs = await p99Of(merchant);
  projector?.kill('SIGCONT');
  report(
    `p99 of a create: ${beforeMs.toFixed(1)} ms, ${stillMs.toFixed(1)} ms while the projector stands still`,
  );
  expect(stillMs).toBeLessThan(beforeMs + SLOWER_MS_MAX);
});
