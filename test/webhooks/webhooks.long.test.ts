/**
 * Webhooks of the service as an operator has it: killed again and again, and a long way
 * behind. Every message is checked by the library of Standard Webhooks.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { newPaymentId } from '../../shared/runtime/ids.ts';
import { freePort } from '../support/free-port.ts';
import { appendPayment, authorized, created } from '../support/payment-events.ts';
import { randomOf } from '../support/random.ts';
import { NODE, ROOT, runCliProcess, startService } from '../support/service-processes.ts';
import { until } from '../support/until.ts';
import {
  ALLOW_LOOPBACK,
  allMessages,
  byPayment,
  firstOfEach,
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
  ...details
} = JSON.parse(readFileSync(join(ROOT, 'examples/payment.json'), 'utf8'));

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

const KILLS = 50;
const WORKERS = 4;

test('kill -9 while it delivers, and while a listener is connected: none lost, order kept, no secret left anywhere', async () => {
  const random = randomOf();
  const folder = newFolder();
  const port = await freePort();
  const env = { ...ALLOW_LOOPBACK, LOG_LEVEL: 'debug', PORT: String(port) };
  const start = () => startService({ dataDir: join(folder, 'data'), env });
  await using receiver = await startReceiver();
  const written: string[] = [];
  let service = await start();
  const merchant = await merchantOf(service, 'm_demo');
  const endpoint = await register(merchant, `${receiver.url}/endpoint`);
  const forward = ['listen', '--forward-to', `${receiver.url}/laptop`];
  const listening = spawn(NODE, ['cli/payments.mjs', ...forward], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, PAYMENTS_URL: service.url, PAYMENTS_TOKEN: merchant.token },
  });
  let noted = '';
  listening.stderr.on('data', (chunk: Buffer) => {
    noted += chunk;
  });
  listening.stdout.resume();
  // Slow enough that most deaths meet a request on its way.
  receiver.respond = ({ path }, response) => {
    const waitMs = path === '/hook/endpoint' ? random.between(0, 40) : 0;
    setTimeout(() => response.writeHead(204).end(), waitMs);
  };
  const at = (path: string) => receiver.received.filter((one) => one.path === path);
  try {
    await until('it listens', () => noted.includes('forwarding to'));
    const listenSecret = /whsec_[A-Za-z0-9+/=]+/.exec(noted)?.[0] ?? '';
    for (let kill = 0; kill < KILLS; kill += 1) {
      let alive = true;
      const work = async (): Promise<void> => {
        while (alive) await saleAndRefund(merchant).catch(() => undefined);
      };
      const working = Array.from({ length: WORKERS }, work);
      await wait(random.between(30, 400));
      alive = false;
      service.kill('SIGKILL');
      await service.exited;
      await Promise.all(working);
      written.push(service.stdout(), service.stderr());
      service = await start();
    }
    const messages = await allMessages(merchant);
    const arrived = (path: string) => new Set(at(path).map(({ id }) => id)).size;
    await until('all at the endpoint', () => arrived('/hook/endpoint') >= messages.length);
    await until('all on the laptop', () => arrived('/hook/laptop') >= messages.length);
    const delivered = firstOfEach(at('/hook/endpoint'), endpoint.secret);
    expect(byPayment(delivered)).toEqual(byPayment(messages));
    // It was never killed: it went on by its position, and sent each once, in the order of the log.
    firstOfEach(at('/hook/laptop'), listenSecret);
    expect(at('/hook/laptop').map(({ body }) => body)).toEqual(messages.map(({ body }) => body));
    const repeats = at('/hook/endpoint').length - messages.length;
    report(`${KILLS} kills, ${messages.length} messages, ${repeats} sent once more`);

    const secrets = [endpoint.secret, listenSecret];
    const rotate = `/api/v1/webhook-endpoints/${endpoint.id}/rotate-secret`;
    secrets.push(String((await request(merchant, 'POST', rotate, {})).json.secret));
    const admin = await service.token('*', 'ops:admin audit:read');
    const paths = [
      ...['', `/${endpoint.id}`, `/${endpoint.id}/attempts`].map(
        (path) => `/api/v1/webhook-endpoints${path}`,
      ),
      ...['/ops/v1/webhook-endpoints', '/audit/v1/events?limit=500', '/metrics', '/health/ready'],
    ];
    for (const path of paths) {
      const bearer = path.startsWith('/api') ? merchant.token : admin;
      const response = await fetch(`${service.url}${path}`, {
        headers: { authorization: `Bearer ${bearer}` },
      });
      expect([path, response.status]).toEqual([path, 200]);
      written.push(await response.text());
    }
    const own = { PAYMENTS_URL: service.url, DATA_DIR: join(folder, 'data') };
    await runCliProcess(['export', '--out', join(folder, 'log.jsonl')], own);
    const topics = spawn(NODE, ['cli/payments.mjs', 'topics', 'tail', '--from', 'start'], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...own },
    });
    let tailed = '';
    topics.stdout.on('data', (chunk: Buffer) => {
      tailed += chunk;
    });
    await until('the topics are tailed', () => tailed.length > 10_000);
    topics.kill();
    service.kill('SIGTERM');
    await service.exited;
    written.push(tailed, service.stdout(), service.stderr());
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
  } finally {
    listening.kill();
    await once(listening, 'close');
    await service[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  }
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
