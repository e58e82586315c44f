/**
 * V2: every process is replaced behind a gateway that asks readiness, the new one started first and then
 * SIGTERM to the old one: no client notices it, and each process has ended within its 10 s.
 */
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { signToken } from '../support/service-in-process.ts';
import {
  standInEventStore,
  standInMongo,
  startThreeProcesses,
} from '../support/service-processes.ts';
import { STOP_MS_MAX } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';
import { type Merchant, request } from '../support/webhook-merchant.ts';

const KINDS = ['command-api', 'query-api', 'projector'] as const;
const WRITERS = 4;
const CREATES_MIN = 1_000;

/** Creates and reads until `end`; keeps what each was answered, and how long it took. */
const load = (merchant: Merchant) => {
  const statuses = { POST: [] as number[], GET: [] as number[] };
  const tookMs: number[] = [];
  const different: string[] = [];
  let running = true;
  const send = async (method: 'POST' | 'GET', path: string, body?: object) => {
    const fromMs = performance.now();
    const response = await request(merchant, method, `/api/v1/payments${path}`, body);
    tookMs.push(performance.now() - fromMs);
    statuses[method].push(response.status);
    return response;
  };
  const write = async (): Promise<void> => {
    while (running) {
      const made = await send('POST', '', { ...payment, captureNow: true });
      const read = await send('GET', `/${made.json.paymentId}`);
      if (read.text !== made.text) different.push(`${made.text} then ${read.text}`);
    }
  };
  const writing = Promise.all(Array.from({ length: WRITERS }, write));
  // `end` reports the failure of a writer.
  writing.catch(() => undefined);
  return {
    statuses,
    different,
    end: async () => {
      running = false;
      await writing;
      const sorted = tookMs.toSorted((a, b) => a - b);
      return { p99Ms: Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0) };
    },
  };
};

test(`${CREATES_MIN} creates with GETs meet no 5xx while every process is replaced, the new one first`, async () => {
  await using eventStore = await standInEventStore();
  await using readStore = await standInMongo();
  await using service = await startThreeProcesses(
    { EVENTSTOREDB_URL: eventStore.url, MONGODB_URL: readStore.url },
    { asksReadiness: true },
  );
  await Promise.all(KINDS.map((kind) => service.add(kind)));
  const token = await signToken(
    { merchant_id: 'm_rolling', sub: 'tester' },
    service.env.JWT_SECRET,
  );
  const merchant = { url: service.url, token };
  const work = load(merchant);
  const stopsMs: number[] = [];
  for (const kind of KINDS)
    for (const old of [...service.processes[kind]]) {
      await service.add(kind);
      const signalledAtMs = performance.now();
      old.kill('SIGTERM');
      expect(await old.exited).toEqual({ code: 0, signal: null });
      stopsMs.push(Math.round(performance.now() - signalledAtMs));
    }
  await until('enough creates', () => work.statuses.POST.length >= CREATES_MIN);
  const { p99Ms } = await work.end();
  const { POST, GET } = work.statuses;
  process.stderr.write(
    `rolling restart: ${POST.length} creates, ${GET.length} GETs, p99 ${p99Ms} ms, stops ${stopsMs.join(', ')} ms\n`,
  );
  expect([...POST, ...GET].filter((status) => status !== 200)).toEqual([]);
  expect(work.different).toEqual([]);
  expect(Math.max(...stopsMs)).toBeLessThan(STOP_MS_MAX);
});
