/**
 * gaps §25, ADR-0006: a damaged index of the log's file hides no event from a command, fails the requests that
 * meet it and no other, is told, and is mended on the stopped folder.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { streamOf } from '../../shared/payment/events.ts';
import { fewAtOnce } from '../../shared/runtime/scheduling.ts';
import { runCli } from '../support/cli.ts';
import {
  expectError,
  type InProcess,
  idOf,
  openInProcess,
  token,
} from '../support/service-in-process.ts';
import { until } from '../support/until.ts';

jest.setTimeout(120_000);

const PAGE_BYTES = 4096;
const INDEX = 'sqlite_autoindex_events_2';

const pagesOf = (db: DatabaseSync): number[] =>
  db
    .prepare(`SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path`)
    .all(INDEX)
    .map(({ pageno }) => Number(pageno));
const edit = (folder: string, change: (bytes: Buffer, db: DatabaseSync) => void): void => {
  const file = join(folder, 'events.sqlite');
  const bytes = readFileSync(file);
  const db = new DatabaseSync(file, { readOnly: true });
  change(bytes, db);
  db.close();
  writeFileSync(file, bytes);
};

/** Moves the index entry of a payment's event to a stream that there is not. */
const hide = (folder: string, paymentId: string, revision: number): void =>
  edit(folder, (bytes, db) => {
    const row = db
      .prepare(
        `SELECT s.id, e.position FROM streams s JOIN events e ON e.stream_id = s.id
         WHERE s.name = ? AND e.revision = ?`,
      )
      .get(streamOf(paymentId), revision);
    const { id, position } = row as { id: number; position: number };
    expect(Math.max(id, position)).toBeLessThan(120);
    // A record of three integers of a byte each.
    const entry = Buffer.from([4, 1, 1, 1, id, revision, position]);
    for (const page of pagesOf(db)) {
      const from = (page - 1) * PAGE_BYTES;
      const at = bytes.indexOf(entry, from);
      if (at !== -1 && at < from + PAGE_BYTES) bytes[at + 4] = 127;
    }
  });

let service: InProcess;
let lines: string[];
const logger = () => {
  lines = [];
  const keep = (_fields: unknown, message?: string) => void lines.push(String(message));
  const log = { info: keep, warn: keep, error: keep, debug: keep, trace: keep, fatal: keep };
  return { ...log, child: () => log, level: 'error' } as never;
};
beforeEach(() => {
  lines = [];
});
afterEach(() => service[Symbol.asyncDispose]());

const audit = async (path: string) =>
  (await service.ask('GET', path, undefined, { token: await token('*', 'audit:read') })).json;
const reasons = async (): Promise<string[]> => {
  const asking = { token: await token('*', 'ops:admin') };
  const { json } = await service.ask('GET', '/ops/v1/attention', undefined, asking);
  return (json.items as { reason: string }[]).map(({ reason }) => reason);
};
const cli = (...args: string[]) => runCli(args, { DATA_DIR: service.dataDir });
const isReady = async () => (await service.ask('GET', '/health/ready')).status === 200;

test('a sale whose capture the index hides is not voided, over restarts, and a repair gives it back', async () => {
  service = await openInProcess({ VERIFY_INTERVAL_MS: '0' });
  await service.create();
  const id = idOf(await service.create({ captureNow: true }));
  await service.restart((folder) => hide(folder, id, 2));
  expectError(await service.change('void', id), 503, 'SERVICE_UNAVAILABLE', expect.anything());
  expect((await service.ledger(id)).map(({ kind }) => kind)).toEqual(['SALE']);
  expect(await audit(`/audit/v1/payments/${id}/verify`)).toMatchObject({
    finding: 'BROKEN',
    broken: { revision: 2, reason: 'the read models have it, the log does not' },
  });
  const broken = {
    stream: streamOf(id),
    revision: 2,
    reason: expect.stringMatching(/row \d+ missing from index .*payments repair --data/),
  };
  expect(await audit('/audit/v1/verify')).toMatchObject({ finding: 'BROKEN', broken });
  await until('it is listed', async () => (await reasons()).includes('LOG_BROKEN'));
  expect(idOf(await service.create())).toMatch(/^pay_/);
  const backup = await cli('backup', join(service.dataDir, 'backup'));
  expect([backup.code, backup.stderr]).toEqual([1, expect.stringMatching(/is damaged \(row \d+ /)]);

  // Without a read model the check alone keeps its void from being stored.
  service.readModels.hold();
  await service.restart((folder) => {
    for (const end of ['', '-wal', '-shm'])
      rmSync(join(folder, `read-models.sqlite${end}`), { force: true });
  });
  expectError(await service.change('void', id), 503, 'SERVICE_UNAVAILABLE', expect.anything());
  service.readModels.release();

  const held = await cli('repair', '--data', service.dataDir);
  expect([held.code, held.stderr]).toEqual([1, expect.stringContaining('a running service')]);
  await service.restart(async (folder) => {
    const mended = await cli('repair', '--data', folder);
    expect([mended.code, mended.stdout]).toEqual([
      0,
      expect.stringMatching(/events, whose chain holds, with new indexes\n.*\.damaged {2}the file/),
    ]);
  });
  expect((await service.change('void', id)).status).toBe(422);
  expect((await service.get(id)).json.status).toBe('CAPTURED');
  expect(await audit('/audit/v1/verify')).toMatchObject({ finding: 'INTACT' });
  await until('it is gone', async () => !(await reasons()).includes('LOG_BROKEN'));
});

test('an empty page of an index fails the requests that meet it, and is told by itself', async () => {
  service = await openInProcess({ VERIFY_INTERVAL_MS: '0' }, logger());
  const created = await fewAtOnce(Array(600).fill(0), () => service.create());
  const ids = created.map(idOf);
  await service.restart((folder) =>
    edit(folder, (bytes, db) => {
      const [, page = 0] = pagesOf(db);
      bytes.fill(0, (page - 1) * PAGE_BYTES, page * PAGE_BYTES);
    }),
  );
  // Streams stand in the index in the order of their payments.
  let taken = 0;
  while ((await service.change('capture', ids[taken] ?? '')).status === 200) taken += 1;
  expect(taken).toBeGreaterThan(0);
  expectError(
    await service.change('capture', ids[taken] ?? ''),
    503,
    'SERVICE_UNAVAILABLE',
    expect.anything(),
  );
  expect((await service.get(ids[taken] ?? '')).status).toBe(200);
  expect(
    lines.filter((line) => line.startsWith('the file of the event log is damaged')),
  ).toHaveLength(1);
  await until('it is listed', async () => (await reasons()).includes('LOG_BROKEN'));
  // The check cannot name what the page held.
  expectError(await service.create(), 503, 'SERVICE_UNAVAILABLE', expect.anything());
  expect(await isReady()).toBe(false);
  await service.restart(async (stopped) => {
    expect(await cli('repair', '--data', stopped)).toMatchObject({ code: 0 });
  });
  expect([await isReady(), (await service.create()).status]).toEqual([true, 200]);
  const again = await fewAtOnce(ids, (id) => service.change('capture', id));
  expect(again.map(({ status }) => status)).toEqual(ids.map((_, n) => (n < taken ? 422 : 200)));
});

test('rows that do not verify are not repaired, and the file stays as it was', async () => {
  service = await openInProcess();
  await service.create();
  await service.restart(async (folder) => {
    const file = join(folder, 'events.sqlite');
    const text = readFileSync(file, 'latin1').replace('"amount":2500', '"amount":9500');
    writeFileSync(file, text, 'latin1');
    const { code, stderr } = await cli('repair', '--data', folder);
    expect([code, stderr]).toEqual([3, expect.stringContaining('its text does not have its hash')]);
    expect(readFileSync(file, 'latin1')).toBe(text);
    writeFileSync(file, text.replace('"amount":9500', '"amount":2500'), 'latin1');
  });
});
