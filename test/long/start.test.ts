/** The refused starts that test/e2e/start.test.ts takes a share of, each by a process. */
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import { expectOneLine, rejection } from '../support/refused-start.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

jest.setTimeout(60_000);

const { path: folder, remove } = temporaryFolder();
afterAll(remove);

describe('settings: a start that is refused', () => {
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

  test('a data folder that cannot be written to is one line that names DATA_DIR', async () => {
    // Permissions do not hold root back; a file system of the kernel does.
    const asRoot = process.getuid?.() === 0;
    const dataDir = asRoot ? '/proc/payments' : join(folder, 'read-only');
    if (!asRoot) mkdirSync(dataDir, { mode: 0o500 });
    expectOneLine(await rejection({ dataDir }), 'DATA_DIR', dataDir);
  });

  test('a data folder below a file is one line that names DATA_DIR', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const dataDir = join(file, 'data');
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

  test('gaps §8: another IDEMPOTENCY_SECRET than the events were written with is refused', async () => {
    const dataDir = join(folder, 'another-secret');
    const first = await startService({ dataDir, env: { IDEMPOTENCY_SECRET: 'a'.repeat(40) } });
    await first[Symbol.asyncDispose]();
    const env = { IDEMPOTENCY_SECRET: 'b'.repeat(40) };
    expectOneLine(await rejection({ dataDir, env }), 'IDEMPOTENCY_SECRET');
  });
});
