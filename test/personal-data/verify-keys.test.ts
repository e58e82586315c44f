/** `payments verify --keys`: what was done to a log or its store of keys, and what the verb says of it. */
import { randomBytes } from 'node:crypto';
import { cpSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { masterKeysOf } from '../../personal-data/master-key.ts';
import { KEYS_FILE, MASTER_KEY_FILE } from '../../personal-data/open.ts';
import type { KeyStore } from '../../personal-data/port.ts';
import { verifyKeysOf } from '../../personal-data/verify-keys.ts';
import { expectError, expectOutput, runCli } from '../support/cli.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, created, personalDataErased } from '../support/payment-events.ts';
import { idOf, openInProcess, SECRET, signToken } from '../support/service-in-process.ts';
import { chainedAnew, openRows } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const { path: folder, remove } = temporaryFolder();
const [earlier, stopped] = [join(folder, 'earlier'), join(folder, 'stopped')];
const env = { JWT_SECRET: SECRET, NO_COLOR: '1' };
/** Of two sales, the erased one, and a refund of the first. */
let boxes: { box: string; key: string }[];

beforeAll(async () => {
  await using service = await openInProcess({ ERASURE_HOLD_DAYS: '0', ERASURE_APPROVERS: '1' });
  const sell = async () => idOf(await service.create({ captureNow: true }));
  const [sold, , erased] = [await sell(), await sell(), await sell()];
  await service.change('refund', sold, { amount: 1, reason: 'worn out' });
  await service.restart((data) => cpSync(data, earlier, { recursive: true }));
  const token = await signToken({ merchant_id: '*', sub: 'jane', scope: 'ops:erase' });
  const order = { reason: 'COURT_ORDER', ticket: 'CASE-1' };
  await service.ask('POST', `/ops/v1/payments/${erased}/erase`, order, { token });
  const run = await runCli(['verify', '--keys'], { ...env, PAYMENTS_URL: await service.listen() });
  expectOutput(run, /^intact .*, 1 payment erased .*\nboxes {2}opens 3, erased 1, missing 0,/s);
  await service.restart((data) => cpSync(data, stopped, { recursive: true }));
  const { rows, close } = openRows(join(stopped, 'events.sqlite'));
  const sealed = rows.map(({ text }) => JSON.parse(text).data);
  boxes = sealed.flatMap(({ personal, reason }) => personal ?? (reason?.box ? reason : []));
  close();
});
afterAll(remove);

const inKeys = (data: string, sql: string, ...values: unknown[]) => {
  using db = new DatabaseSync(join(data, KEYS_FILE));
  return db.prepare(sql).all(...(values as string[]))[0]?.wrapped;
};
const keyOf = (at: number) => String(boxes[at]?.key);
const wrapped = (data: string, at: number) =>
  inKeys(data, 'SELECT wrapped FROM personal_key WHERE id = ?', keyOf(at));
const wrap = (data: string, at: number, bytes: unknown) => {
  const erasedAt = bytes === null ? 'made_at' : 'NULL';
  const sql = `UPDATE personal_key SET wrapped = ?, erased_at = ${erasedAt} WHERE id = ?`;
  inKeys(data, sql, bytes, keyOf(at));
};
const restore = (data: string) => wrap(data, 2, wrapped(earlier, 2));
const lose = (data: string) => rmSync(join(data, MASTER_KEY_FILE));
const swapKeys = (data: string): void => {
  const [one, other] = [wrapped(data, 0), wrapped(data, 1)];
  wrap(data, 0, other);
  wrap(data, 1, one);
};
const wrapAnother = (data: string): void => {
  const secret = readFileSync(join(data, MASTER_KEY_FILE), 'utf8');
  wrap(data, 0, masterKeysOf(secret, undefined)[0].wrap(randomBytes(32), keyOf(0)));
};
/** In a log with hashes that fit, without the seals that would tell it. */
const moveBox = (data: string): void => {
  const { rows, write, close } = openRows(join(data, 'events.sqlite'));
  const [to = '', from = ''] = boxes.map((one) => JSON.stringify(one));
  const kept = rows.filter(({ text }) => !text.includes('"LogSealed"'));
  write(chainedAnew(kept, ({ text }) => text.replace(to, from)));
  close();
  rmSync(join(data, 'sealing-key.pem'));
};

const FINE = { opens: 3, erased: 1, missing: 0, alive: 0, unreadable: 0, refused: 0 };
const GONE = { opens: 2, missing: 1 };
const REFUSED = { opens: 2, refused: 1 };
const take = 'DELETE FROM personal_key WHERE id = ?';

type Row = [what: string, change: (data: string) => unknown, found: object, reason: RegExp];

test.each<Row>([
  ['nothing was done', () => undefined, {}, /^$/],
  ['a key was taken out', (data) => inKeys(data, take, keyOf(0)), GONE, /is missing, and no event/],
  ['a key was erased alone', (data) => wrap(data, 0, null), GONE, /is erased, and no event/],
  ['an erased key came back', restore, { erased: 0, alive: 1 }, /still stored after its erasure$/],
  ['two keys were swapped', swapKeys, { opens: 1, unreadable: 2 }, /its key was changed, or/],
  ['the master key is away', lose, { opens: 0, unreadable: 3 }, /its master key is not set$/],
  ['another key was wrapped', wrapAnother, REFUSED, /^personal: its key is not \S+, which the ev/],
  ['a box was moved', moveBox, REFUSED, /was not sealed by key .* in payment-/],
])(
  'where %s, --keys counts the boxes and names their payments',
  async (what, change, found, reason) => {
    const data = join(folder, what.replaceAll(' ', '-'));
    cpSync(stopped, data, { recursive: true });
    change(data);
    const args = ['verify', '--data', data, '--keys', '--format', 'json'];
    const { code, stdout } = await runCli(args, env);
    const { finding, ok, keys } = JSON.parse(stdout);
    const { named, ...counts } = keys;
    const isFine = reason.test('');
    expect([code, finding, ok]).toEqual([isFine ? 0 : 3, 'INTACT', isFine]);
    expect(counts).toEqual({ ...FINE, ...found });
    expect(named).toHaveLength(counts.missing + counts.alive + counts.unreadable + counts.refused);
    for (const one of named) {
      expect(one.stream).toMatch(/^payment-pay_/);
      expect(one.reason).toMatch(reason);
    }
  },
);

test('a folder without keys has none to verify', async () => {
  rmSync(join(earlier, KEYS_FILE));
  const run = await runCli(['verify', '--data', earlier, '--keys'], env);
  expectError(run, 2, /keys needs a store of keys and a token of all merchants/);
});

test('an erasure between its event and its keys is no fault', async () => {
  const store = memoryEventStore();
  await appendPayment(store, 'pay_1', [created({ paymentId: 'pay_1' }), personalDataErased()]);
  const looks = ['unreadable', 'erased'] as const;
  let look = 0;
  const read: KeyStore['read'] = async ([id = '']) => new Map([[id, looks[look++] ?? 'missing']]);
  const found = await verifyKeysOf(store, { read })(new AbortController().signal);
  expect(found).toMatchObject({ erased: 1, alive: 0, named: [] });
});
