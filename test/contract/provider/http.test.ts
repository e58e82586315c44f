import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { httpProvider } from '../../../command-api/provider/http/provider.ts';
import type { Provider } from '../../../command-api/provider/port.ts';
import { simulatorServer } from '../../../provider-simulator/server.ts';
import { openSimulation } from '../../../provider-simulator/simulation.ts';
import { describeProvider } from './describe-provider.ts';
import { LEDGER_FILE } from './opened.ts';

const TOKEN = 'the-token-of-the-test';

const openOverHttp = async (folder: string, timeoutMs: number): Promise<Provider> => {
  const simulation = openSimulation(join(folder, LEDGER_FILE));
  const server = simulatorServer({ simulation, token: TOKEN });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const client = httpProvider({ url, token: TOKEN, connectTimeoutMs: 5000, timeoutMs });
  return {
    ...client,
    close: async () => {
      await client.close();
      await server.close();
      simulation.close();
    },
  };
};

describeProvider({ name: 'simulator over HTTP', open: openOverHttp });
