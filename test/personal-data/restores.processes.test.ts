/** gaps §19 after a restore, in real processes: keys or log from before an erasure, and its line in ERASURE_LEDGER. */
import { cpSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { expectError, expectOutput, runCli } from '../support/cli.ts';
import { expectOneLine, rejection } from '../support/refused-start.ts';
import { PAYMENTS, payment, SECRET, signToken } from '../support/service-in-process.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { path: folder, remove } = temporaryFolder();
afterAll(remove);
const [dataDir, ledger] = [join(folder, 'data'), join(folder, 'erasures')];
const [oldLog, oldKeys] = [join(folder, 'log'), join(folder, 'keys')];
const env = {
  JWT_SECRET: SECRET,
  DATA_DIR: dataDir,
  LOG_LEVEL: 'warn',
  ERASURE_HOLD_DAYS: '0',
  ERASURE_APPROVERS: '1',
  ERASURE_LEDGER: ledger,
};
const options = { dataDir, env };
const cli = (...args: string[]) => runCli(args, env);
const sale = async (service: Service): Promise<string> => {
  const made = await service.post(PAYMENTS, payment({ captureNow: true }));
  expect(made.status).toBe(200);
  return made.json.paymentId;
};
const erase = async (service: Service, id: string) => {
  const token = await signToken({ merchant_id: '*', sub: 'jane', scope: 'ops:erase' });
  const headers = { authorization: `Bearer ${token}` };
  const body = { reason: 'STORED_BY_MISTAKE', ticket: 'DPO-1' };
  return service.post(`/ops/v1/payments/${id}/erase`, body, headers);
};
const expectErased = async (service: Service): Promise<void> =>
  expect((await service.get(`${PAYMENTS}/${kept}`)).json).toMatchObject({
    paymentMethod: { card: { holderName: 'ERASED' } },
    personalData: { erased: true, erasedAt: expect.any(String) },
  });
const linesOf = () => {
  const [, ...lines] = readFileSync(ledger, 'utf8').split('\n');
  return lines.map((line) => JSON.parse(line));
};
const putBackKeys = (): void => {
  for (const end of ['', '-wal', '-shm'])
    rmSync(join(dataDir, `keys.sqlite${end}`), { force: true });
  cpSync(join(oldKeys, 'keys.sqlite'), join(dataDir, 'keys.sqlite'));
};
const areErased = (ids: string[]): boolean => {
  using db = new DatabaseSync(join(dataDir, 'keys.sqlite'), { readOnly: true });
  const row = db.prepare('SELECT wrapped FROM personal_key WHERE id = ?');
  return ids.every((id) => row.get(id)?.wrapped === null);
};

let kept: string;
let later: string;

beforeAll(async () => {
  expectOneLine(await rejection(options), 'ERASURE_LEDGER', `${ledger} cannot be read`, 'ENOENT');
  writeFileSync(ledger, '');
  await using service = await startService(options);
  kept = await sale(service);
  expect(await cli('backup', oldLog)).toMatchObject({ code: 0 });
  expect(await cli('backup', '--keys', oldKeys)).toMatchObject({ code: 0 });
  later = await sale(service);
  expect((await erase(service, kept)).status).toBe(200);
  renameSync(ledger, `${ledger}.away`);
  const refused = await erase(service, later);
  expect([refused.status, refused.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
  renameSync(`${ledger}.away`, ledger);
  expect((await erase(service, later)).status).toBe(200);
  expect((await erase(service, later)).status).toBe(200);
  service.kill('SIGKILL');
});

test('an erasure is one line of the ledger, without a text of a person', () => {
  const form = { reason: 'STORED_BY_MISTAKE', ticket: 'DPO-1', requestedBy: 'jane' };
  expect(linesOf()).toMatchObject([
    { paymentId: kept, keys: [expect.any(String)], time: expect.any(String), ...form },
    { paymentId: later, ...form },
  ]);
});

test('old keys under a newer log: the start erases again before it answers', async () => {
  putBackKeys();
  const keys = linesOf().flatMap((line) => line.keys);
  expect(areErased(keys)).toBe(false);
  await using service = await startService(options);
  expect(areErased(keys)).toBe(true);
  await expectErased(service);
  expectError(await cli('erase', '--reapply', ledger), 1, 'held by a running service');
  service.kill();
  await service.exited;
});

test('old keys and an old log: refused until the ledger is carried out again, then shown as erased', async () => {
  expect(await cli('restore', oldLog)).toMatchObject({ code: 0 });
  putBackKeys();
  const keys = linesOf().flatMap((line) => line.keys);
  const line = await rejection(options);
  expectOneLine(line, 'ERASURE_LEDGER', kept, `payments erase --reapply ${ledger}`);
  const done = await cli('erase', '--reapply', ledger);
  expectOutput(done, /^2 erasures/);
  expect(areErased(keys)).toBe(true);
  expectOutput(await cli('erase', '--reapply', ledger), /^0 erasures/);
  await using service = await startService(options);
  await expectErased(service);
  expectOutput(await runCli(['verify', '--all'], { ...env, PAYMENTS_URL: service.url }), /^intact/);
});
