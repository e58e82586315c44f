/**
 * What `npm start` promises about its own start and end (settings, "Commands"): one clear line per
 * problem on stderr that names the setting, exit code 1, no stack trace, no hang.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { openDataFolder } from '../../embedded/data-folder.ts';
import payment from '../../examples/payment.json' with { type: 'json' };
import { type ServiceOptions, spawnService, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** No bound of the contract: a start that hangs fails the test. */
const REFUSED_MS_MAX = 30_000;

jest.setTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), 'payments-start-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Starts a service that refuses to start, and gives the lines of its stderr. */
const rejection = async (options: ServiceOptions): Promise<string[]> => {
  await using refused = await spawnService(options);
  await until('the start is refused', () => !refused.running(), REFUSED_MS_MAX);
  expect(await refused.exited).toEqual({ code: 1, signal: null });
  return refused.stderr().trimEnd().split('\n');
};

/** One line in all, which begins with the setting and says these things. */
const expectOneLine = (lines: readonly string[], setting: string, ...says: string[]): void => {
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(new RegExp(`^payments: ${setting}\\b`));
  for (const part of says) expect(lines[0]).toContain(part);
};

describe('settings: a start that is refused', () => {
  test('a second process on the same data folder is refused, and the first still responds', async () => {
    await using first = await startService();
    const paid = await first.post('/api/v1/payments', payment);
    expectOneLine(
      await rejection({ dataDir: first.dataDir }),
      'DATA_DIR',
      first.dataDir,
      'another running service',
    );
    const kept = await first.get(`/api/v1/payments/${paid.json.paymentId}`);
    expect([kept.status, kept.text]).toEqual([200, paid.text]);
    expect((await first.post('/api/v1/payments', payment)).status).toBe(200);
  });

  test('a busy port is one line that names PORT', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const address = other.address();
    const port = address !== null && typeof address !== 'string' ? String(address.port) : '';
    try {
      expectOneLine(await rejection({ env: { PORT: port } }), 'PORT', port, 'in use');
    } finally {
      other.close();
    }
  });

  test('a data folder below a file is one line that names DATA_DIR', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const dataDir = join(file, 'data');
    expectOneLine(await rejection({ dataDir }), 'DATA_DIR', dataDir);
  });

  test('a data folder that cannot be written to is one line that names DATA_DIR', async () => {
    // Permissions do not hold root back; a file system of the kernel does.
    const asRoot = process.getuid?.() === 0;
    const dataDir = asRoot ? '/proc/payments' : join(folder, 'read-only');
    if (!asRoot) mkdirSync(dataDir, { mode: 0o500 });
    expectOneLine(await rejection({ dataDir }), 'DATA_DIR', dataDir);
  });

  test('a file of the data folder that cannot be used is one line that names DATA_DIR', async () => {
    const names = [
      ...['events.sqlite', 'read-models.sqlite', 'provider-ledger.sqlite'],
      ...['idempotency.secret', 'signing-key.json'],
    ];
    const refusals = names.map(async (name) => {
      const dataDir = join(folder, `no-${name}`);
      mkdirSync(join(dataDir, name), { recursive: true });
      return { dataDir, lines: await rejection({ dataDir }) };
    });
    for (const { dataDir, lines } of await Promise.all(refusals)) {
      expectOneLine(lines, 'DATA_DIR');
      expect(lines[0]).toMatch(new RegExp(`${dataDir}|signing-key.json`));
    }
  });

  test('gaps §8: an empty idempotency.secret is refused, for repeats would be charged again', async () => {
    const dataDir = join(folder, 'no-secret');
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'idempotency.secret'), '');
    expectOneLine(
      await rejection({ dataDir }),
      'DATA_DIR',
      'idempotency.secret',
      'holds no secret',
    );
  });

  test('all wrong settings are reported at once, a line for each', async () => {
    const env = {
      PROVIDER_TIMEOUT_MS: '20000',
      MAX_AMOUNT: 'a lot',
      LOG_LEVEL: 'loud',
      MONGODB_URL: 'mongodb://localhost',
      JWT_ALGORITHMS: 'none',
    };
    const lines = await rejection({ env });
    expect(lines.toSorted()).toEqual([
      expect.stringMatching(/^payments: JWT_ALGORITHMS must/),
      expect.stringMatching(/^payments: LOG_LEVEL must be one of/),
      expect.stringMatching(/^payments: MAX_AMOUNT must be a whole number/),
      expect.stringMatching(/^payments: MONGODB_URL must be an address/),
      expect.stringMatching(/^payments: PROVIDER_TIMEOUT_MS/),
    ]);
  });

  test('gaps §8: another IDEMPOTENCY_SECRET than the events were written with is refused', async () => {
    const dataDir = join(folder, 'another-secret');
    const first = await startService({ dataDir, env: { IDEMPOTENCY_SECRET: 'a'.repeat(40) } });
    await first[Symbol.asyncDispose]();
    const env = { IDEMPOTENCY_SECRET: 'b'.repeat(40) };
    expectOneLine(await rejection({ dataDir, env }), 'IDEMPOTENCY_SECRET');
  });
});

describe('settings: npm start', () => {
  test('starts, and SIGTERM to its process ends everything with exit code 0', async () => {
    await using service = await startService({ command: ['npm', 'start'] });
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    await expect(fetch(`${service.url}/health/live`)).rejects.toThrow();
    // A process that was left running would still lock the folder, and refuse this start.
    await using next = await startService({ dataDir: service.dataDir });
    expect(next.running()).toBe(true);
  });

  const hostNode = spawnSync('node', ['--version'], { encoding: 'utf8' }).stdout?.trim();
  test(`the machine's own Node (${hostNode}) can start the service`, async () => {
    const command = ['node', 'scripts/launch.cjs', 'embedded/main.ts'];
    await using service = await startService({ command });
    expect((await service.post('/api/v1/payments', payment)).status).toBe(200);
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  test('prints its address, that it is not for production, and what to type next', async () => {
    const dataDir = join(folder, 'of others too');
    mkdirSync(dataDir, { mode: 0o755 });
    writeFileSync(join(dataDir, 'notes.txt'), '');
    await using service = await startService({ dataDir });
    // F28: a folder with other files keeps its mode, and the banner says what that means.
    expect(service.stderr()).toContain(
      `Warning: DATA_DIR: other users have rights in ${dataDir} (mode 755); type: chmod 700 ${dataDir}`,
    );
    expect(service.stderr()).toContain(`${service.url}/api/v1/payments`);
    expect(service.stderr()).toMatch(/Not for production: .*simulated.*signing key/);
    expect(service.stderr()).toContain('npx payments token');
  });

  test('only their owner may use the data folder (0700) and its files (0600)', async () => {
    const dataDir = join(folder, 'modes');
    mkdirSync(dataDir, { mode: 0o755 });
    await using service = await startService({ dataDir });
    await service.post('/api/v1/payments', payment);
    const modes = readdirSync(dataDir).map((name) => {
      const { mode } = statSync(join(dataDir, name));
      return `${name} ${(mode & 0o777).toString(8)}`;
    });
    expect((statSync(dataDir).mode & 0o777).toString(8)).toBe('700');
    expect(modes.length).toBeGreaterThan(3);
    expect(modes.filter((line) => !line.endsWith(' 600'))).toEqual([]);
    service.kill('SIGTERM');
    await service.exited;
  });

  test('F28: a data folder that has files already, and that others may read, is 0700 from the next start on', () => {
    const dataDir = join(folder, 'modes');
    chmodSync(dataDir, 0o755);
    const opened = openDataFolder(dataDir);
    try {
      expect((statSync(dataDir).mode & 0o777).toString(8)).toBe('700');
      expect(opened.warnings).toEqual([]);
    } finally {
      opened.release();
    }
  });
});
