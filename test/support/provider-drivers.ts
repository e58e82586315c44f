/** The drivers of the provider port; test/contract/provider.test.ts runs over them. */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { httpProvider } from '../../command-api/provider/http/provider.ts';
import type { Provider, ProviderOperation } from '../../command-api/provider/port.ts';
import { simulatorServer } from '../../provider-simulator/server.ts';
import { openSimulation, openSimulator } from '../../provider-simulator/simulator.ts';
import { CardSecret } from '../../shared/payment/card.ts';

export type ProviderDriver = {
  name: string;
  /** Opens a provider over the ledger of a folder, as the next start of it would. */
  open(folder: string, timeoutMs: number): Promise<Provider>;
};

export const LEDGER_FILE = 'ledger.sqlite';
const TOKEN = 'the-token-of-the-test';

const openOverHttp = async (folder: string, timeoutMs: number): Promise<Provider> => {
  const simulation = openSimulation(join(folder, LEDGER_FILE));
  const server = simulatorServer({ simulation, token: TOKEN });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const client = httpProvider({ url, token: TOKEN, connectTimeoutMs: 1000, timeoutMs });
  return {
    ...client,
    close: async () => {
      await client.close();
      await server.close();
      simulation.close();
    },
  };
};

export const providerDrivers: ProviderDriver[] = [
  {
    name: 'simulator in process',
    open: (folder, timeoutMs) => openSimulator({ file: join(folder, LEDGER_FILE), timeoutMs }),
  },
  { name: 'simulator over HTTP', open: openOverHttp },
];

export const APPROVED_CARD = '4242424242424242';
export const CVV = '739';

type CardOperation = Extract<ProviderOperation, { kind: 'AUTHORIZE' | 'SALE' }>;
type FollowUp = Exclude<ProviderOperation, CardOperation>;

let operations = 0;
/** An operation id that no other operation of this run has. */
export const newOperationId = (): string => {
  operations += 1;
  return `OP_${String(operations).padStart(6, '0')}`;
};

/** An authorization of 20.00 USD, or what the parts say. */
export const authorize = (
  number = APPROVED_CARD,
  parts: Partial<Omit<CardOperation, 'card'>> = {},
): CardOperation => ({
  operationId: newOperationId(),
  paymentId: 'pay_1',
  amount: 2000,
  currency: 'USD',
  kind: 'AUTHORIZE',
  card: new CardSecret({
    number,
    holderName: 'Jane Doe',
    expiryMonth: '12',
    expiryYear: '2030',
    cvv: CVV,
  }),
  ...parts,
});

/** A capture, void or refund of all of an authorization, or what the parts say. */
export const followUp = (
  kind: FollowUp['kind'],
  { operationId, paymentId, amount, currency }: ProviderOperation,
  parts: Partial<FollowUp> = {},
): FollowUp => ({
  operationId: newOperationId(),
  paymentId,
  amount,
  currency,
  kind,
  authorizationId: operationId,
  ...parts,
});
