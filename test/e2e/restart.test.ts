/**
 * What a restart promises: every payment is served again byte for byte, the read models are only a
 * copy, and what was unresolved when the process died is resolved without a second charge.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, jest, test } from '@jest/globals';
import type { LedgerEntry } from '../../command-api/provider/port.ts';
import declined from '../../examples/declined.json' with { type: 'json' };
import payment from '../../examples/payment.json' with { type: 'json' };
import sale from '../../examples/sale.json' with { type: 'json' };
import { simulatorServer } from '../../provider-simulator/server.ts';
import { openSimulation } from '../../provider-simulator/simulator.ts';
import { entriesOfLedger, openPaymentsIn } from '../support/ledger-and-log.ts';
import { shareOf } from '../support/long-run-share.ts';
import { type Service, startService } from '../support/service.ts';
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

const PAYMENTS = '/api/v1/payments';
const withCard = (number: string) => ({
  ...payment,
  paymentMethod: { type: 'CARD', card: { ...payment.paymentMethod.card, number } },
});

const create = async (service: Service, body: unknown, key?: string): Promise<string> => {
  const response = await service.post(PAYMENTS, body, key ? { 'idempotency-key': key } : {});
  return response.json.paymentId;
};

/** Makes one payment in every status; gives their ids. */
const onePaymentOfEachKind = async (service: Service): Promise<string[]> => {
  const [authorized, captured, refunded, voided, refusedCapture] = await Promise.all([
    create(service, payment, 'kept'),
    create(service, payment),
    create(service, sale),
    create(service, payment),
    create(service, withCard('4000000000004244')),
  ]);
  await service.post(`${PAYMENTS}/${captured}/capture`, { captureAmount: 1500 });
  await service.post(`${PAYMENTS}/${captured}/refund`, { refundAmount: 500, reason: 'too late' });
  await service.post(`${PAYMENTS}/${refunded}/refund`);
  await service.post(`${PAYMENTS}/${voided}/void`);
  await service.post(`${PAYMENTS}/${refusedCapture}/capture`);
  const failed = await create(service, declined);
  return [authorized, captured, refunded, voided, refusedCapture, failed];
};

const bodiesOf = (service: Service, ids: readonly string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await service.get(`${PAYMENTS}/${id}`)).text));

const end = async (service: Service, signal: NodeJS.Signals): Promise<void> => {
  service.kill(signal);
  await service.exited;
};

const deleteReadModels = (dataDir: string): number => {
  const files = readdirSync(dataDir).filter((name) => name.startsWith('read-models.sqlite'));
  for (const name of files) rmSync(join(dataDir, name));
  return files.length;
};

describe('gaps §9: a restart', () => {
  test('serves every payment byte for byte, also with the read models deleted', async () => {
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
    await end(first, 'SIGTERM');

    await using second = await startService({ dataDir });
    expect(await bodiesOf(second, ids)).toEqual(bodies);
    const repeat = await second.post(PAYMENTS, payment, { 'idempotency-key': 'kept' });
    expect(repeat.text).toBe(bodies[0]);
    expect(repeat.headers.get('idempotent-replayed')).toBe('true');
    await end(second, 'SIGKILL');

    expect(deleteReadModels(dataDir)).toBeGreaterThan(0);
    await using third = await startService({ dataDir });
    expect(openPaymentsIn(dataDir)).toEqual([]);
    expect(await bodiesOf(third, ids)).toEqual(bodies);
  });
});

const resolved = async (service: Service, paymentId: string): Promise<string> => {
  await until('it is resolved', () => openPaymentsIn(service.dataDir).length === 0);
  return (await service.get(`${PAYMENTS}/${paymentId}`)).json.status;
};

/** The payment of the only POST in flight, as the read models name it. */
const paymentInFlight = async (service: Service): Promise<string> => {
  await until('an intent is durable', () => openPaymentsIn(service.dataDir).length === 1);
  return openPaymentsIn(service.dataDir)[0] ?? '';
};

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

/** A provider over HTTP that carries out every operation and, while `silent`, sends no response. */
const providerThatCanBeSilent = async () => {
  const simulation = openSimulation(join(newFolder(), 'ledger.sqlite'));
  let silent = false;
  const server = simulatorServer({
    token: undefined,
    simulation: {
      ...simulation,
      operate: async (operation) => {
        const carried = await simulation.operate(operation);
        return silent ? { outcome: 'SILENT' } : carried;
      },
    },
  });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    fallSilent: () => {
      silent = true;
    },
    entries: (): LedgerEntry[] => simulation.list(0, 100).entries,
    [Symbol.asyncDispose]: async () => {
      server.server.closeAllConnections();
      await server.close();
      simulation.close();
    },
  };
};

describe('gaps §7: kill -9 after the provider acted and before it responded', () => {
  type Row = { operation: string; before: [string, object][]; status: string };
  const rows: Row[] = [
    { operation: 'capture', before: [], status: 'CAPTURED' },
    { operation: 'void', before: [], status: 'VOIDED' },
    { operation: 'refund', before: [['capture', {}]], status: 'REFUNDED' },
  ];

  test('create: resolved as approved, charged once', async () => {
    await using provider = await providerThatCanBeSilent();
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

  test.each(shareOf(rows, 1))('$operation: resolved as approved, carried out once', async (row) => {
    await using provider = await providerThatCanBeSilent();
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
