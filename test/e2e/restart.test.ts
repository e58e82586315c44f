/**
 * What a restart promises: every payment is served again byte for byte, and the read models are only a
 * copy. Operations that were unresolved when the process died are in test/crash.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import declined from '../../examples/declined.json' with { type: 'json' };
import payment from '../../examples/payment.json' with { type: 'json' };
import sale from '../../examples/sale.json' with { type: 'json' };
import { openPaymentsIn } from '../support/ledger-and-log.ts';
import { type Client, type Service, startService } from '../support/service.ts';
import { startServiceHere } from '../support/service-here.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const PAYMENTS = '/api/v1/payments';

/** The example of the README with another card. */
const withCard = (number: string) => ({
  ...payment,
  paymentMethod: { type: 'CARD', card: { ...payment.paymentMethod.card, number } },
});

/** Creates a payment and gives its id. */
const create = async (service: Client, body: unknown, key?: string): Promise<string> => {
  const response = await service.post(PAYMENTS, body, key ? { 'idempotency-key': key } : {});
  return response.json.paymentId;
};

/** Makes one payment in every status; gives their ids. */
const onePaymentOfEachKind = async (service: Client): Promise<string[]> => {
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

/** Their bodies as GET serves them. */
const bodiesOf = (service: Client, ids: readonly string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await service.get(`${PAYMENTS}/${id}`)).text));

/** Ends the process by a signal. */
const end = async (service: Service, signal: NodeJS.Signals): Promise<void> => {
  service.kill(signal);
  await service.exited;
};

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
