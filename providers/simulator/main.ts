/** `npm run start:provider`: the simulated provider as a process (settings, provider.md). */
import { join } from 'node:path';
import type { Config } from '../../shared/runtime/config.ts';
import { isLockHeld } from '../../shared/runtime/private-files.ts';
import { runProcess } from '../../shared/runtime/process-life.ts';
import { simulatorServer } from './server.ts';
import { openSimulation, type Simulation } from './simulation.ts';

const IDLE_CHECK_MS = 100;

class LedgerRefused extends Error {
  override name = 'LedgerRefused';
}

const openOrReject = ({ dataDir, provider }: Config): Simulation => {
  try {
    const file = join(dataDir, 'provider-ledger.sqlite');
    return openSimulation(file, 'FULL', provider.authenticationTimeoutMs);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new LedgerRefused(
      isLockHeld(error)
        ? `DATA_DIR: another process holds the provider's ledger in ${dataDir}`
        : `DATA_DIR: cannot open the provider's ledger in ${dataDir} (${code ?? 'unknown'})`,
    );
  }
};

await runProcess({
  mode: 'provider',
  operatorErrors: [LedgerRefused],
  prepare: openOrReject,
  open: async ({ config, log, prepared: simulation }) => {
    const app = simulatorServer({ simulation, token: config.provider.token, logger: log });
    return {
      app,
      stop: async () => {
        // Kept-alive connections that fall idle only now would hold the stop up.
        setInterval(() => app.server.closeIdleConnections(), IDLE_CHECK_MS).unref();
        await app.close();
        simulation.close();
      },
    };
  },
  banner: (_opened, baseUrl) => `simulated provider listens on ${baseUrl}\n`,
  farewell: "the provider's ledger is on disk",
});
