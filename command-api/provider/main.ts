/** `npm run start:provider`: the simulated provider as a process of its own (settings, provider.md). */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadConfig } from '../../shared/config.ts';
import { createLogger, type LogLevel } from '../../shared/log.ts';
import { openSimulation, type Simulation } from './simulator.ts';
import { simulatorServer } from './simulator-server.ts';

/** A stop that hangs is cut here, well below the 10 s that operators are promised. */
const STOP_MS_MAX = 8000;
const SQLITE_BUSY = 5;

const refuse = (...problems: string[]): never => {
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exit(1);
};

const readSettings = () => {
  const read = loadConfig(process.env, 'provider');
  return read.ok ? read.config : refuse(...read.problems);
};

const openOrRefuse = (folder: string): Simulation => {
  try {
    return openSimulation(join(folder, 'provider-ledger.sqlite'));
  } catch (error) {
    const { errcode, code } = error as { errcode?: number; code?: string };
    return refuse(
      errcode === SQLITE_BUSY
        ? `DATA_DIR: another process holds the provider's ledger in ${folder}`
        : `DATA_DIR: cannot open the provider's ledger in ${folder} (${code ?? 'unknown'})`,
    );
  }
};

const { host, port, dataDir, logLevel, provider } = readSettings();
const { log, flush } = createLogger({ level: logLevel as LogLevel, destination: 'stdout' });
const simulation = openOrRefuse(dataDir);
const app = simulatorServer({ simulation, token: provider.token, logger: log });

let stopping = false;
const stop = async (): Promise<void> => {
  if (stopping) return;
  stopping = true;
  setTimeout(() => process.exit(1), STOP_MS_MAX).unref();
  // Kept-alive connections that fall idle only now would hold the stop up.
  setInterval(() => app.server.closeIdleConnections(), 100).unref();
  await app.close();
  simulation.close();
  flush();
  process.exit(0);
};
process.on('SIGTERM', stop);
process.on('SIGINT', stop);

try {
  await app.listen({ host, port });
} catch (error) {
  const { code } = error as { code?: string };
  refuse(
    code === 'EADDRINUSE'
      ? `PORT: ${host}:${port} is in use; stop what listens there, or set another PORT`
      : `HOST: cannot listen on ${host}:${port} (${code ?? 'unknown'})`,
  );
}
const bound = app.server.address() as AddressInfo;
process.stdout.write(`simulated provider listens on http://${host}:${bound.port}\n`);
