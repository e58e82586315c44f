/**
 * What `npm start` promises about its own start and end (settings, "Commands"): one clear line per
 * problem on stderr that names the setting, exit code 1, no stack trace, no hang.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import {
  asDataFolderRefused,
  idempotencySecret,
  openDataFolder,
  openFileIn,
} from '../../embedded/data-folder.ts';
import payment from '../../examples/payment.json' with { type: 'json' };
import { openSimulator } from '../../providers/simulator/simulator.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { DataFolderRefused } from '../../shared/runtime/private-files.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { expectOneLine, rejection } from '../support/refused-start.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const folder = folderOfTests();

const refusedBy = (act: () => void, dataDir: string): unknown => {
  try {
    return act();
  } catch (error) {
    return asDataFolderRefused(error, dataDir);
  }
};

describe('settings: a start that is refused', () => {
  test('a data folder that cannot be used names DATA_DIR', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    expect(() => openDataFolder(join(file, 'data'))).toThrow(DataFolderRefused);
    const dataDir = join(folder, 'no-log');
    mkdirSync(join(dataDir, 'events.sqlite'), { recursive: true });
    const opened = openSqliteEventStore({ file: join(dataDir, 'events.sqlite') });
    const refused = await opened.catch((error: unknown) => asDataFolderRefused(error, dataDir));
    expect(refused).toBeInstanceOf(DataFolderRefused);
    expect(refused).toMatchObject({ message: expect.stringContaining(`DATA_DIR: ${dataDir}`) });
  });

  test('a damaged log names the verification as the next step, one that cannot be opened does not', async () => {
    const file = join(folder, 'damaged.sqlite');
    const refused = async () => {
      const error = await openSqliteEventStore({ file }).catch((reason: unknown) => reason);
      return (asDataFolderRefused(error, folder) as Error).message;
    };
    writeFileSync(file, 'not a database'.repeat(100));
    expect(await refused()).toContain(`; next: payments verify --data ${folder}`);
    rmSync(file);
    mkdirSync(file);
    expect(await refused()).not.toContain('next:');
  });

  test('a data folder whose path SQLite does not take is told so, and is not made', async () => {
    const long = join(folder, ...Array<string>(3).fill('a'.repeat(200)));
    expect(() => openDataFolder(long)).toThrow(/^DATA_DIR: the path has \d+ bytes/);
    expect(existsSync(join(folder, 'a'.repeat(200)))).toBe(false);
    const longest = join(folder, 'b'.repeat(200), 'c'.repeat(470 - 202 - folder.length));
    const opened = openDataFolder(longest);
    const store = await openSqliteEventStore({ file: opened.path('events.sqlite') });
    const copy = await openSqliteEventStore({ file: opened.path('webhook-deliveries.sqlite') });
    await Promise.all([store.close(), copy.close()]);
    opened.release();
  });

  test('a data folder on a full disk is told to get room, not its last good copy', () => {
    const file = new DatabaseSync(':memory:');
    const filling = () => file.exec('PRAGMA max_page_count = 1; CREATE TABLE t (x)');
    expect(filling).toThrow('disk is full');
    const writing = () => writeFileSync('/dev/full', 'x');
    for (const fill of existsSync('/dev/full') ? [filling, writing] : [filling]) {
      expect(refusedBy(fill, folder)).toMatchObject({
        name: 'DataFolderRefused',
        message: `DATA_DIR: the disk of ${folder} is full; make room on it and start again`,
      });
    }
    file.close();
  });

  test('a lock file that cannot be locked is refused with the reason', () => {
    const dataDir = join(folder, 'no-lock');
    mkdirSync(dataDir);
    writeFileSync(
      join(dataDir, 'service.lock'),
      'no database at all, and longer than a header'.repeat(9),
    );
    expect(() => openDataFolder(dataDir)).toThrow(
      /service\.lock cannot be locked \(file is not a data/,
    );
  });

  test('a file of the data folder that cannot be used is named', async () => {
    const dataDir = join(folder, 'unusable');
    mkdirSync(join(dataDir, 'idempotency.secret'), { recursive: true });
    writeFileSync(join(dataDir, 'provider-ledger.sqlite'), 'no database'.repeat(100));
    const opened = openDataFolder(dataDir);
    const ledger = openFileIn(opened, 'provider-ledger.sqlite', (file) =>
      openSimulator({ file, timeoutMs: 1_000 }),
    );
    await expect(ledger).rejects.toThrow(
      `DATA_DIR: ${dataDir}/provider-ledger.sqlite cannot be used (file is not a database)`,
    );
    await expect(idempotencySecret(opened)).rejects.toThrow(
      `DATA_DIR: ${dataDir}/idempotency.secret cannot be used (EISDIR`,
    );
    opened.release();
  });

  test('gaps §8: an empty idempotency.secret is refused, for repeats would be charged again', async () => {
    const dataDir = join(folder, 'no-secret');
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'idempotency.secret'), '');
    const opened = openDataFolder(dataDir);
    const refused = idempotencySecret(opened);
    await expect(refused).rejects.toThrow(DataFolderRefused);
    await expect(refused).rejects.toThrow(/^DATA_DIR: \S+idempotency\.secret holds no secret/);
    opened.release();
  });

  testOfLongRun(
    'gaps §8: another IDEMPOTENCY_SECRET than the events were written with is refused',
    async () => {
      const dataDir = join(folder, 'another-secret');
      const first = await startService({ dataDir, env: { IDEMPOTENCY_SECRET: 'a'.repeat(40) } });
      await first[Symbol.asyncDispose]();
      const env = { IDEMPOTENCY_SECRET: 'b'.repeat(40) };
      expectOneLine(await rejection({ dataDir, env }), 'IDEMPOTENCY_SECRET');
    },
  );
});

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe('settings: npm start', () => {
  const hostNode = spawnSync('node', ['--version'], { encoding: 'utf8' }).stdout?.trim();
  let service: Service;
  const dataDir = join(folder, 'of others too');
  beforeAll(async () => {
    mkdirSync(dataDir, { mode: 0o755 });
    writeFileSync(join(dataDir, 'notes.txt'), '');
    service = await startService({ dataDir, command: ['npm', 'start'] });
    // It is ready before its last lines are written.
    await until('the banner is whole', () => service.stderr().includes('Warning: DATA_DIR'));
  });
  afterAll(() => service[Symbol.asyncDispose]());

  test(`on the machine's own Node (${hostNode}) prints its address, that it is not for production, and what to type next`, () => {
    // A folder with other files keeps its mode, and the banner says what that means.
    expect(service.stderr()).toContain(
      `Warning: DATA_DIR: other users have rights in ${dataDir} (mode 755); type: chmod 700 ${dataDir}`,
    );
    expect(service.stderr()).toContain(`${service.url}/api/v1/payments`);
    expect(service.stderr()).toMatch(
      /^payments \d+\.\d+\.\d+( \([0-9a-f]+\))? {2}mode embedded \(.*\) {3}ready in \d+\.\d s$/m,
    );
    expect(service.stderr()).toMatch(/Not for production: .*simulated.*signing key/);
    expect(service.stderr()).toContain('npx payments token');
  });

  test('a second process on the same data folder is refused, and the first still responds', async () => {
    const paid = await service.post('/api/v1/payments', payment);
    expectOneLine(await rejection({ dataDir }), 'DATA_DIR', dataDir, 'another running service');
    const kept = await service.get(`/api/v1/payments/${paid.json.paymentId}`);
    expect([kept.status, kept.text]).toEqual([200, paid.text]);
    expect((await service.post('/api/v1/payments', payment)).status).toBe(200);
  });

  test('each of its files is for their owner alone', () => {
    const own = readdirSync(dataDir).filter((name) => name !== 'notes.txt');
    expect(own.length).toBeGreaterThan(3);
    const modes = own.map((name) => `${name} ${modeOf(join(dataDir, name))}`);
    expect(modes.filter((line) => !line.endsWith(' 600'))).toEqual([]);
  });

  test('SIGTERM to its process ends everything with exit code 0', async () => {
    service.kill('SIGTERM');
    expect(await service.exited).toEqual({ code: 0, signal: null });
    await expect(fetch(`${service.url}/health/live`)).rejects.toThrow();
    // A process that was left running would still lock the folder.
    openDataFolder(dataDir).release();
  });
});

describe('the modes of a data folder', () => {
  const dataDir = join(folder, 'modes');

  test('one that is empty, or has files already, and that others may read, is 0700 from the next start on', () => {
    mkdirSync(dataDir, { mode: 0o755 });
    for (const was of ['empty', 'with files']) {
      const opened = openDataFolder(dataDir);
      try {
        expect([was, modeOf(dataDir), opened.warnings]).toEqual([was, '700', []]);
      } finally {
        opened.release();
      }
      chmodSync(dataDir, 0o755);
    }
  });

  test('files of ours that others may read are 0600 from the next start on, and no other files', () => {
    const copied = join(folder, 'copied');
    mkdirSync(copied, { mode: 0o755 });
    const names = [
      ...['events.sqlite', 'events.sqlite-wal', 'read-models.sqlite', 'webhook-deliveries.sqlite'],
      ...['provider-ledger.sqlite', 'idempotency.secret', 'webhook.secret', 'signing-key.json'],
      ...['sealing-key.pem', 'sealing-key.pem.head', 'sealing-key.pem.next'],
      ...['relay-checkpoint.json', 'log-verification.json', 'log-verification.json.new'],
      ...['service.log', 'service.lock'],
    ];
    for (const name of names) writeFileSync(join(copied, name), '', { mode: 0o644 });
    chmodSync(join(copied, 'webhook.secret'), 0o400);
    const opened = openDataFolder(copied);
    opened.release();
    expect(modeOf(copied)).toBe('700');
    expect(opened.warnings).toEqual([
      expect.stringMatching(/^DATA_DIR: other users had rights in files of \S+ until .*; replace/),
    ]);
    const open = names.filter((name) => existsSync(join(copied, name)));
    const wereOpen = open.filter((name) => name !== 'webhook.secret');
    for (const name of wereOpen) expect(opened.warnings[0]).toContain(name);
    expect(open.filter((name) => modeOf(join(copied, name)) !== '600')).toEqual(['webhook.secret']);
    writeFileSync(join(copied, 'notes.txt'), '', { mode: 0o644 });
    openDataFolder(copied).release();
    expect(modeOf(join(copied, 'notes.txt'))).toBe('644');
  });
});
