/** The restarts that test/e2e/restart.test.ts takes a share of. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import sale from '../../examples/sale.json' with { type: 'json' };
import { entriesOfLedger } from '../support/ledger-and-log.ts';
import {
  bodiesOf,
  create,
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

test('gaps §9: after SIGTERM serves every payment byte for byte, and knows the keys', async () => {
  const dataDir = newFolder();
  await using first = await startService({ dataDir });
  const ids = await onePaymentOfEachKind(first);
  const bodies = await bodiesOf(first, ids);
  await end(first, 'SIGTERM');
  await using second = await startService({ dataDir });
  expect(await bodiesOf(second, ids)).toEqual(bodies);
  const repeat = await second.post(PAYMENTS, payment, { 'idempotency-key': 'kept' });
  expect(repeat.text).toBe(bodies[0]);
  expect(repeat.headers.get('idempotent-replayed')).toBe('true');
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

  test('card 4236, carried out with its response lost: resolved as AUTHORIZED, charged once', async () => {
    const dataDir = newFolder();
    await using first = await startService({ dataDir });
    const lost = await first.post(PAYMENTS, withCard('4000000000004236'));
    await end(first, 'SIGKILL');
    expect(lost.status).toBe(503);
    const paymentId = lost.headers.get('location')?.split('/').at(-1) ?? '';
    await using second = await startService({ dataDir });
    expect(await resolved(second, paymentId)).toBe('AUTHORIZED');
    await end(second, 'SIGTERM');
    expect(await entriesOfLedger(dataDir)).toEqual([
      expect.stringMatching(`AUTHORIZE ${paymentId} 2500 APPROVED$`),
    ]);
  });

  test('card 4228 while the service runs on: resolved after PROVIDER_TIMEOUT_MS', async () => {
    await using service = await startService({ env: { PROVIDER_TIMEOUT_MS: '100' } });
    const lost = await service.post(PAYMENTS, withCard('4000000000004228'));
    expect([lost.status, lost.json.error]).toEqual([503, 'PROVIDER_UNAVAILABLE']);
    const paymentId = lost.headers.get('location')?.split('/').at(-1) ?? '';
    expect(lost.json.details.join()).toContain(paymentId);
    expect(await resolved(service, paymentId)).toBe('FAILED');
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

  type Row = { operation: string; before: [string, object][]; status: string };
  const rows: Row[] = [
    { operation: 'capture', before: [], status: 'CAPTURED' },
    { operation: 'void', before: [], status: 'VOIDED' },
    { operation: 'refund', before: [['capture', {}]], status: 'REFUNDED' },
  ];

  test.each(rows)('$operation: resolved as approved, carried out once', async (row) => {
    await using provider = await providerThatCanBeSilent(newFolder());
    const options = { dataDir: newFolder(), env: { PROVIDER_URL: provider.url } };
    await using first = await startService(options);
    const paymentId = await create(first, payment);
    for (const [path, body] of row.before) {
      await first.post(`${PAYMENTS}/${paymentId}/${path}`, body);
    }
    const acted = provider.entries().length;
    provider.fallSilent();
    const lost = first.post(`${PAYMENTS}/${paymentId}/${row.operation}`).catch(() => 'no answer');
    await until('the provider has acted', () => provider.entries().length === acted + 1);
    await end(first, 'SIGKILL');
    expect(await lost).toBe('no answer');
    await using second = await startService(options);
    expect(await resolved(second, paymentId)).toBe(row.status);
    const repeat = await second.post(`${PAYMENTS}/${paymentId}/${row.operation}`);
    expect(repeat.status).toBe(422);
    expect(provider.entries()).toHaveLength(acted + 1);
  });
});
