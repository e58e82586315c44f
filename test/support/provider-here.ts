/** The simulator over HTTP in this process, over a ledger file, as the provider of a service. */
import type { AddressInfo } from 'node:net';
import { simulatorServer } from '../../providers/simulator/server.ts';
import { openSimulation } from '../../providers/simulator/simulation.ts';

export const providerHere = async (ledgerFile: string, token?: string) => {
  const simulation = openSimulation(ledgerFile);
  const server = simulatorServer({ simulation, token });
  await server.listen({ host: '127.0.0.1', port: 0 });
  const { port } = server.server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    simulation,
    [Symbol.asyncDispose]: async () => {
      server.server.closeAllConnections();
      await server.close();
      simulation.close();
    },
  };
};
