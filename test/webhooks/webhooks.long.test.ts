import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import type { MaskedCard } from '../../shared/payment/fields.ts';
import { takeApart } from '../../shared/payment/response.ts';
import { newPaymentId } from '../../shared/runtime/ids.ts';
import { appendPayment, authorized, created } from '../support/payment-events.ts';
import { ROOT, runCliProcess, startService } from '../support/service-processes.ts';
import { until } from '../support/until.ts';
import {
  ALLOW_LOOPBACK,
  merchantOf,
  register,
  request,
  saleAndRefund,
} from '../support/webhook-merchant.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const AT_ONCE = 512;
const MERCHANT = 'm_demo';
const {
  amount: _,
  currency: __,
  captureNow: ___,
  paymentMethod: ____,
  ...given
} = JSON.parse(readFileSync(join(ROOT, 'examples/payment.json'), 'utf8'));
const { details } = takeApart({ card: { holderName: 'Jane Doe' } as MaskedCard, details: given });

/** Appends `count` payments to the log in a data folder that no service has open. */
const fillFolder = async (dataDir: string, count: number): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite') });
  try {
    for (let left = count; left > 0; left -= AT_ONCE) {
      const ids = Array.from({ length: Math.min(AT_ONCE, left) }, newPaymentId);
      const append = (paymentId: string) => {
        const time = new Date().toISOString();
        const intent = created({ paymentId, merchantId: MERCHANT, details });
        return appendPayment(store, paymentId, [intent, authorized()], () => time);
      };
      await Promise.all(ids.map(append));
    }
  } finally {
    await store.close();
  }
};

const report = (line: string): void => void process.stderr.write(`webhooks: ${line}\n`);
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-webhooks-'));
  mkdirSync(join(folder, 'data'), { mode: 0o700 });
  return folder;
};

test('no secret of a webhook is left in a file, a response or a line of the log', async () => {
  const folder = newFolder();
  const dataDir = join(folder, 'data');
  await using receiver = await startReceiver();
  await using service = await startService({
    dataDir,
    env: { ...ALLOW_LOOPBACK, LOG_LEVEL: 'debug' },
  });
  const merchant = await merchantOf(service, MERCHANT);
  const endpoint = await register(merchant, receiver.url);
  await saleAndRefund(merchant);
  await until('it is delivered', () => receiver.received.length >= 2);
  const rotate = `/api/v1/webhook-endpoints/${endpoint.id}/rotate-secret`;
  const rotated = await request(merchant, 'POST', rotate, {});
  const listened = await runCliProcess(['listen', '--forward-to', receiver.url, '--print-secret'], {
    PAYMENTS_URL: service.url,
    PAYMENTS_TOKEN: merchant.token,
  });
  const secrets = [endpoint.secret, String(rotated.json.secret), listened.stdout.trim()];
  const admin = await service.token('*', 'ops:admin audit:read');
  const own = ['', `/${endpoint.id}`, `/${endpoint.id}/attempts`];
  const paths = [
    ...own.map((path) => `/api/v1/webhook-endpoints${path}`),
    ...['/ops/v1/webhook-endpoints', '/audit/v1/events?limit=500', '/metrics', '/health/ready'],
  ];
  const written: string[] = [];
  for (const path of paths) {
    const bearer = path.startsWith('/api') ? merchant.token : admin;
    const response = await fetch(`${service.url}${path}`, {
      headers: { authorization: `Bearer ${bearer}` },
    });
    expect([path, response.status]).toEqual([path, 200]);
    written.push(await response.text());
  }
  const operator = { PAYMENTS_URL: service.url, DATA_DIR: dataDir };
  await runCliProcess(['export', '--out', join(folder, 'log.jsonl')], operator);
  service.kill('SIGTERM');
  await service.exited;
  written.push(service.stdout(), service.stderr());
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => readFileSync(join(parentPath, name)));
  expect(files.some((file) => file.includes('WebhookEndpointSecretRotated'))).toBe(true);
  for (const secret of secrets) {
    const base64 = secret.replace('whsec_', '');
    expect(base64).toMatch(/^[A-Za-z0-9+/]{43}=$/);
    const key = Buffer.from(base64, 'base64');
    for (const form of [key, Buffer.from(base64), Buffer.from(key.toString('hex'))]) {
      expect(files.some((file) => file.includes(form))).toBe(false);
      expect(written.some((text) => Buffer.from(text).includes(form))).toBe(false);
    }
  }
  rmSync(folder, { recursive: true });
});

const BACKLOG_PAYMENTS = 50_000;
const MEGABYTE = 1024 * 1024;

const rssOf = (pid: number): number => {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
};

test('a backlog of 100,000 events is delivered in flat memory', async () => {
  const folder = newFolder();
  const dataDir = join(folder, 'data');
  await fillFolder(dataDir, BACKLOG_PAYMENTS);
  let received = 0;
  await using receiver = await startReceiver();
  receiver.respond = (_message, response) => {
    received += 1;
    receiver.received.length = 0;
    response.writeHead(204).end();
  };
  try {
    await using service = await startService({
      dataDir,
      env: {
        ...ALLOW_LOOPBACK,
        LOG_LEVEL: 'warn',
        SEAL_EVENTS_MAX: '1000000000',
        // The first one, a minute after the start, takes a thread of its own with up to 100 MB.
        RECONCILE_INTERVAL_MS: '0',
        // With room, Node lets garbage lie for minutes; what is kept for each message ends a process of this size.
        NODE_OPTIONS: '--max-old-space-size=160',
      },
    });
    const merchant = await merchantOf(service, 'm_demo');
    const { id: endpointId } = await register(merchant, receiver.url);
    const began = performance.now();
    const since = '2020-01-01T00:00:00.000Z';
    await request(merchant, 'POST', `/api/v1/webhook-endpoints/${endpointId}/resend`, { since });
    const peaks: number[] = [];
    for (let tenth = 1; tenth <= 10; tenth += 1) {
      let peak = 0;
      await until(`${tenth} tenths`, () => {
        peak = Math.max(peak, rssOf(service.pid));
        return received >= (BACKLOG_PAYMENTS * tenth) / 10;
      });
      peaks.push(peak);
    }
    const perSecond = (BACKLOG_PAYMENTS * 1000) / (performance.now() - began);
    const megabytes = peaks.map((peak) => Math.round(peak / MEGABYTE));
    report(
      `100,000 events behind: ${Math.round(perSecond)} messages/s, RSS by tenths ${megabytes}`,
    );
    // Caches of bounded size are filled in the first fifth; a tenth of the backlog is 18 MB of bodies.
    const [, second = 0] = peaks;
    expect(Math.max(...peaks.slice(5))).toBeLessThan(second + 100 * MEGABYTE);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
