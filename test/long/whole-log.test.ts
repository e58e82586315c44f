/**
 * A log of 30,000 events on EventStoreDB (its stand-in), and a service over it. An operator
 * or an auditor who reads the whole log sees every event.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readManifest } from '../../cli/export-file.ts';
import { openEventStoreDb } from '../../shared/event-store/eventstoredb/event-store.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { runCli } from '../support/cli.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { newEvent, wholeLife } from '../support/payment-events.ts';
import { type Service, startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAYMENTS = 5_000;
const EVENTS = 6 * PAYMENTS;
const AT_ONCE = 50;

const folder = temporaryFolder();
let standIn: StandIn;
let service: Service;
let env: Record<string, string>;

const fill = async (): Promise<void> => {
  const logger = { debug: () => undefined, warn: () => undefined };
  const store = await openEventStoreDb({ url: standIn.url, logger });
  for (let from = 0; from < PAYMENTS; from += AT_ONCE) {
    const append = (_: unknown, n: number) => {
      const id = `pay_${from + n}`;
      return store.append(
        streamOf(id),
        'none',
        wholeLife(id).map((event) => newEvent(event)),
      );
    };
    await Promise.all(Array.from({ length: AT_ONCE }, append));
  }
  await store.close();
};

const cli = async (...args: string[]) => {
  const own = { ...env, DATA_DIR: service.dataDir, PORT: String(service.port) };
  const { code, stdout, stderr } = await runCli([...args, '--format', 'json'], own);
  if (code !== 0) throw new Error(`payments ${args.join(' ')}: exit code ${code}\n${stderr}`);
  return { value: JSON.parse(stdout), stderr };
};
const auditor = async () => ({
  authorization: `Bearer ${await service.token('*', 'audit:read ops:admin')}`,
});

beforeAll(async () => {
  standIn = await startStandIn({ noisy: true });
  await fill();
  env = {
    EVENTSTOREDB_URL: standIn.url,
    IDEMPOTENCY_SECRET: 's'.repeat(40),
    WEBHOOK_SECRET: 's'.repeat(40),
  };
  service = await startService({ env });
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await standIn.close();
  folder.remove();
});

const caughtUp = () =>
  until('the read models hold the log', async () => {
    const { json } = await service.get('/ops/v1/projections', await auditor());
    const [status] = json.projections as { caughtUp: boolean; lagEvents: number }[];
    return status?.caughtUp === true && status.lagEvents === 0;
  });

test('payments verify --all verifies every event', async () => {
  const { value, stderr } = await cli('verify', '--all');
  expect(value).toMatchObject({ ok: true, finding: 'INTACT' });
  expect(value.events).toBeGreaterThanOrEqual(EVENTS);
  expect(stderr).toMatch(/^verify 100% /m);
});

test('payments export writes every line and an honest manifest, which verify --file accepts', async () => {
  const out = join(folder.path, 'log.jsonl');
  await cli('export', '--out', out);
  const lines = readFileSync(out, 'utf8').trimEnd().split('\n');
  expect(lines.filter((line) => line.includes('"stream":"payment-pay_'))).toHaveLength(EVENTS);
  expect(readManifest(`${out}.manifest.json`)).toMatchObject({ count: lines.length });
  const { value } = await cli('verify', '--file', out);
  expect(value).toMatchObject({ ok: true, events: lines.length });
});

test('the pages of the log hold every event once', async () => {
  const streams = new Map<string, number>();
  let from = 'start';
  for (let atEnd = false; !atEnd; ) {
    const path = `/audit/v1/events?limit=1000&from=${encodeURIComponent(from)}`;
    const { json } = await service.get(path, await auditor());
    const { events, next } = json as unknown as { events: { stream: string }[]; next: string };
    for (const { stream } of events) streams.set(stream, (streams.get(stream) ?? 0) + 1);
    from = next;
    atEnd = json.atEnd === true;
  }
  const own = [...streams].filter(([stream]) => stream.startsWith('payment-pay_'));
  expect(own).toHaveLength(PAYMENTS);
  expect(new Set(own.map(([, count]) => count))).toEqual(new Set([6]));
});

test('a rebuild takes in every payment, and the read models fit the log', async () => {
  await caughtUp();
  const { value } = await cli('projections', 'rebuild', '--yes');
  expect(value).toMatchObject({ equal: true, served: true, new: { documents: PAYMENTS } });
  expect(value.events).toBeGreaterThanOrEqual(EVENTS);
  const compared = await cli('verify', '--read-models');
  expect(compared.value).toMatchObject({
    differences: 0,
    documents: PAYMENTS,
    payments: PAYMENTS,
  });
});
