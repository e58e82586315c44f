/** What the tests of a restart of the whole service share. */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import declined from '../../examples/declined.json' with { type: 'json' };
import payment from '../../examples/payment.json' with { type: 'json' };
import sale from '../../examples/sale.json' with { type: 'json' };
import type { SimulatedEntry } from '../../provider-simulator/ledger.ts';
import { simulatorServer } from '../../provider-simulator/server.ts';
import { openSimulation } from '../../provider-simulator/simulation.ts';
import type { Client, Service } from './service.ts';

export const PAYMENTS = '/api/v1/payments';

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
export const onePaymentOfEachKind = async (service: Client): Promise<string[]> => {
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
export const bodiesOf = (service: Client, ids: readonly string[]): Promise<string[]> =>
  Promise.all(ids.map(async (id) => (await service.get(`${PAYMENTS}/${id}`)).text));

/** Ends the process by a signal. */
export const end = async (service: Service, signal: NodeJS.Signals): Promise<void> => {
  service.kill(signal);
  await service.exited;
};

/** A provider over HTTP that carries out every operation and, while `silent`, sends no response. */
export const providerThatCanBeSilent = async (folder: string) => {
  const simulation = openSimulation(join(folder, 'ledger.sqlite'));
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
    entries: (): SimulatedEntry[] => simulation.list(0, 100).entries,
    [Symbol.asyncDispose]: async () => {
      server.server.closeAllConnections();
      await server.close();
      simulation.close();
    },
  };
};
