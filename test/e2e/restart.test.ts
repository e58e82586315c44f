/**
 * What a restart promises: every payment is served again byte for byte, the read models are only a
 * copy, and what was unresolved when the process died is resolved without a second charge. The other
 * restarts are in test/long/restart.test.ts.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import sale from '../../examples/sale.json' with { type: 'json' };
import { entriesOfLedger, openPaymentsIn } from '../support/ledger-and-log.ts';
import {
  bodiesOf,
  end,
  onePaymentOfEachKind,
  PAYMENTS,
  paymentInFlight,
  providerThatCanBeSilent,
  resolved,
  withCard,
} from '../support/restarts.ts';
import { startService } from '../support/service.ts';
import { until } from '../support/until.ts';

jest.setTimeout(60_000);

const folders: string[] = [];
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-restart-'));
  folders.push(folder);
  return folder;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

const deleteReadModels = (dataDir: string): number => {
  const files = readdirSync(dataDir).filter((name) => name.startsWith('read-models.sqlite'));
  for (const name of files) rmSync(join(dataDir, name));
  return files.length;
};

describe('gaps §9: a restart', () => {
  test('after kill -9 and with the read models deleted serves every payment byte for byte', async () => {
    const dataDir = newFolder();
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

    expect(deleteReadModels(dataDir)).toBeGreaterThan(0);
    await using second = await startService({ dataDir });
    expect(openPaymentsIn(dataDir)).toEqual([]);
    expect(await bodiesOf(second, ids)).toEqual(bodies);
    const repeat = await second.post(PAYMENTS, payment, { 'idempotency-key': 'kept' });
    expect(repeat.text).toBe(bodies[0]);
    expect(repeat.headers.get('idempotent-replayed')).toBe('true');
  });
});

describe('gaps §7: kill -9 while an outcome is unknown', () => {
  test('card 4228, never carried out: resolved as FAILED, nothing is charged', async () => {
    const dataDir = newFolder();
    await using first = await startService({ dataDir });
    const lost = first.post(PAYMENTS, withCard('4000000000004228')).catch(() => 'no answer');
    const paymentId = await paymentInFlight(first);
    await end(first, 'SIGKILL');
    expect(await lost).toBe('no answer');
    await using second = await startService({ dataDir });
    expect(await resolved(second, paymentId)).toBe('FAILED');
    await end(second, 'SIGTERM');
    expect(await entriesOfLedger(dataDir)).toEqual([]);
  });
});

describe('gaps §7: kill -9 after the provider acted and before it responded', () => {
  test('create: resolved as approved, charged once', async () => {
    await using provider = await providerThatCanBeSilent(newFolder());
    const options = { dataDir: newFolder(), env: { PROVIDER_URL: provider.url } };
    await using first = await startService(options);
    provider.fallSilent();
    const lost = first.post(PAYMENTS, sale).catch(() => 'no answer');
    await until('the provider has acted', () => provider.entries().length === 1);
    const paymentId = await paymentInFlight(first);
    await end(first, 'SIGKILL');
    expect(await lost).toBe('no answer');
    await using second = await startService(options);
    expect(await resolved(second, paymentId)).toBe('CAPTURED');
    expect(provider.entries().map(({ kind }) => kind)).toEqual(['SALE']);
  });
});
