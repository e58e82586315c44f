import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import type { ProviderOperation } from '../../providers/port.ts';
import { openSimulator } from '../../providers/simulator/simulator.ts';
import { authorize } from '../support/provider-operations.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { describeProvider } from './describe-provider.ts';
import { LEDGER_FILE } from './opened.ts';

describeProvider({
  name: 'simulator in process',
  token: 'tok_visa',
  open: (folder, timeoutMs) => openSimulator({ file: join(folder, LEDGER_FILE), timeoutMs }),
});

/** Seconds of a minute at which its entries were made; null: by a version that kept no times. */
test.each<[made: (number | null)[], since: number, listed: number[] | 'from the start']>([
  [[10, 20, 30, 40], 20, [2, 3, 4]],
  [[10, 20, 30, 40], 41, []],
  [[10, 20, 30, 40], 0, [1, 2, 3, 4]],
  [[10, 10, 10, 40], 10, [1, 2, 3, 4]],
  [[null, null, 30, 40], 31, [4]],
  [[null, null, 30, 40], 30, 'from the start'],
  [[null, null, null, null], 30, 'from the start'],
])('gaps §28: of entries of %j since %j it lists %j', async (made, since, listed) => {
  const folder = temporaryFolder();
  const file = join(folder.path, LEDGER_FILE);
  const open = () => openSimulator({ file, timeoutMs: 10_000 });
  const timeOf = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, '0')}.000Z`;
  const first = await open();
  for (const _ of made) await first.execute(authorize(), async () => undefined);
  await first.close();
  const db = new DatabaseSync(file);
  const update = db.prepare('UPDATE operations SET made_at = ? WHERE sequence = ?');
  for (const [at, second] of made.entries())
    update.run(second === null ? null : timeOf(second), at + 1);
  db.close();
  const provider = await open();
  const page = await provider.ledger(null, 100, timeOf(since));
  await provider.close();
  folder.remove();
  const expected = listed === 'from the start' ? made.map((_, at) => at + 1) : listed;
  expect(page.entries.map(({ cursor }) => Number(cursor))).toEqual(expected);
  expect(page.since).toBe(listed === 'from the start' ? undefined : timeOf(since));
});

test('a refund made elsewhere is an entry before it is asked about, and makes no log older', async () => {
  const folder = temporaryFolder();
  const provider = await openSimulator({
    file: join(folder.path, LEDGER_FILE),
    timeoutMs: HANGS_MS,
  });
  const sale = authorize('4000000000004293', { kind: 'SALE' });
  await provider.execute(sale, async () => undefined);
  const { paymentId, merchantId, amount, currency, operationId: authorizationId } = sale;
  const about = { paymentId, merchantId, amount, currency, authorizationId };
  const { entries } = await provider.ledger(null, 100);
  for (let times = 0; times < 2; times += 1)
    await provider.laterResults({ ...about, refunds: [], observed: [] });
  expect((await provider.ledger(null, 100)).entries).toEqual(entries);
  expect(entries.slice(1)).toMatchObject([
    { kind: 'REFUND', outcome: 'APPROVED', paymentId, amount: 100, currency },
  ]);
  expect(await provider.ledgerEnd(null)).toEqual(entries.slice(0, 1));
  await provider.close();
  folder.remove();
});

test('operations of one turn are all stored before any has its response, or none is', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, LEDGER_FILE);
  const provider = await openSimulator({ file, timeoutMs: HANGS_MS });
  const execute = (operation: ProviderOperation) =>
    provider.execute(operation, async () => undefined);
  const db = new DatabaseSync(file);
  const stored = () => db.prepare('SELECT count(*) AS count FROM operations').get()?.count;
  const responses = Array.from({ length: 8 }, () => execute(authorize()).then(stored));
  expect(await Promise.all(responses)).toEqual(Array(8).fill(8));
  db.exec('BEGIN IMMEDIATE');
  const refused = [authorize(), authorize()];
  for (const response of await Promise.all(refused.map(execute)))
    expect(response).toEqual({ outcome: 'UNKNOWN', reason: 'failed' });
  db.exec('ROLLBACK');
  for (const one of refused)
    expect(await provider.lookUp({ ...one, requestedAt: '' })).toEqual({ outcome: 'NOT_FOUND' });
  expect(await execute(authorize())).toMatchObject({ providerReference: 'sim_9' });
  db.close();
  await provider.close();
  folder.remove();
});
