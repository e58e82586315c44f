/**
 * What a restart promises: every payment is served again byte for byte, and the read models are only a
 * copy. Operations that were unresolved when the process died are in test/crash.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import { bodiesOf, end, onePaymentOfEachKind, PAYMENTS } from '../support/restarts.ts';
import { startService } from '../support/service.ts';
import { startServiceHere } from '../support/service-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

jest.setTimeout(240_000);

const { path: dataDir, remove } = temporaryFolder();
afterAll(remove);

const deleteReadModels = (): number => {
  const files = readdirSync(dataDir).filter((name) => name.startsWith('read-models.sqlite'));
  for (const name of files) rmSync(join(dataDir, name));
  return files.length;
};

describe('gaps §9: a restart', () => {
  test('after kill -9 and with the read models deleted serves every payment byte for byte', async () => {
    await using first = await startService({ dataDir });
    const ids = await onePaymentOfEachKind(first);
    const bodies = await bodiesOf(first, ids);
    const statuses = bodies.map((body) => JSON.parse(body).status);
    expect(statuses).toEqual([
      'AUTHORIZED',
      'CAPTURED',
      'REFUNDED',
      'VOIDED',
      'AUTHORIZED',
      'FAILED',
    ]);
    await end(first, 'SIGKILL');

    expect(deleteReadModels()).toBeGreaterThan(0);
    await using second = await startServiceHere({ dataDir });
    expect(openPaymentsIn(dataDir)).toEqual([]);
    expect(await bodiesOf(second, ids)).toEqual(bodies);
    const repeat = await second.post(PAYMENTS, payment, { 'idempotency-key': 'kept' });
    expect(repeat.text).toBe(bodies[0]);
    expect(repeat.headers.get('idempotent-replayed')).toBe('true');
  });
});
