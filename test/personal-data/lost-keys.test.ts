/** gaps §19: a store of keys that is older than the log, and one that has lost a key. */
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from '@jest/globals';
import { KEYS_FILE } from '../../personal-data/open.ts';
import { runCli } from '../support/cli.ts';
import { openInProcess, SECRET, signToken } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const backups = temporaryFolder();
const copyOf = join(backups.path, 'keys');
const service = await openInProcess({ ERASURE_HOLD_DAYS: '0', ERASURE_APPROVERS: '1' });
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  backups.remove();
});

const ask = async (method: string, path: string, scope: string, body?: object) => {
  const token = await signToken({ merchant_id: '*', sub: 'jane', scope });
  return service.ask(method, path, body, { token });
};
const erase = (id: string) =>
  ask('POST', `/ops/v1/payments/${id}/erase`, 'ops:erase', {
    reason: 'STORED_BY_MISTAKE',
    ticket: 'DPO-1',
  });
const rowsIn = (folder: string) => {
  using db = new DatabaseSync(join(folder, KEYS_FILE), { readOnly: true });
  return db.prepare('SELECT id, wrapped FROM personal_key').all();
};

test('a copy of the keys from before an erasure brings none back: it is carried out again before a request', async () => {
  const id = (await service.create({ captureNow: true })).json.paymentId;
  const env = { DATA_DIR: service.dataDir, JWT_SECRET: SECRET };
  expect(await runCli(['backup', '--keys', copyOf], env)).toMatchObject({ code: 0 });
  const wrapped = new Map(rowsIn(copyOf).map((row) => [row.id, row.wrapped as Uint8Array]));
  expect(await erase(id)).toMatchObject({ status: 200 });
  await service.restart((folder) => {
    for (const end of ['', '-wal', '-shm']) rmSync(join(folder, KEYS_FILE + end), { force: true });
    cpSync(join(copyOf, KEYS_FILE), join(folder, KEYS_FILE));
  });
  const [erased, ...others] = rowsIn(service.dataDir).filter((row) => row.wrapped === null);
  expect(others).toEqual([]);
  const copy = Buffer.from(wrapped.get(erased?.id as string) as Uint8Array);
  expect(copy).toHaveLength(60);
  await service.restart((folder) => {
    expect(readFileSync(join(folder, KEYS_FILE)).includes(copy)).toBe(false);
  });
  expect((await service.get(id)).text).toContain('"holderName":"ERASED"');
});

test('a key that is gone without an erasure is told, and its payment goes on', async () => {
  const id = (await service.create({ captureNow: true })).json.paymentId;
  const events = await ask('GET', `/audit/v1/events?limit=1000`, 'audit:read');
  expect(events.status).toBe(200);
  await service.restart((folder) => {
    using db = new DatabaseSync(join(folder, KEYS_FILE));
    db.exec('DELETE FROM personal_key WHERE wrapped IS NOT NULL');
  });
  const got = await service.get(id);
  expect(got.json).toMatchObject({
    paymentMethod: { card: { holderName: 'UNAVAILABLE' } },
    personalData: { unavailable: true },
  });
  expect((await service.change('refund', id, { amount: 1 })).status).toBe(200);
  const { items } = (await ask('GET', '/ops/v1/attention', 'ops:admin')).json as unknown as {
    items: { paymentId: string; what: string }[];
  };
  expect(items).toMatchObject([
    { paymentId: id, what: expect.stringMatching(/^Its names and addresses cannot be opened/) },
  ]);
  expect((await erase(id)).status).toBe(200);
  expect((await service.get(id)).text).toContain('"holderName":"ERASED"');
});
