/** gaps §19: a store of keys that has lost a key. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from '@jest/globals';
import { KEYS_FILE } from '../../personal-data/open.ts';
import { openInProcess, signToken } from '../support/service-in-process.ts';

const service = await openInProcess({ ERASURE_HOLD_DAYS: '0', ERASURE_APPROVERS: '1' });
afterAll(() => service[Symbol.asyncDispose]());

const ask = async (method: string, path: string, scope: string, body?: object) => {
  const token = await signToken({ merchant_id: '*', sub: 'jane', scope });
  return service.ask(method, path, body, { token });
};
const erase = (id: string) =>
  ask('POST', `/ops/v1/payments/${id}/erase`, 'ops:erase', {
    reason: 'STORED_BY_MISTAKE',
    ticket: 'DPO-1',
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
