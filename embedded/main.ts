/** `npm start`: the whole service in one process on the embedded store (settings, "Commands"). */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SecretRefused } from '../command-api/service.ts';
import manifest from '../package.json' with { type: 'json' };
import { CheckpointBeyondHead } from '../projector/lag.ts';
import { type Config, loadConfig } from '../shared/config.ts';
import { StoreUnavailable } from '../shared/event-store/port.ts';
import { createLogger, type LogLevel } from '../shared/log.ts';
import { bannerOf } from './banner.ts';
import { type DataFolder, DataFolderRefused, openDataFolder } from './data-folder.ts';
import { openService, type Service } from './service.ts';

/** What is left of the promised 10 s when a stop hangs. */
const STOP_MS_MAX = 9_000;

const refuse = (problems: readonly string[]): never => {
  for (const problem of problems) process.stderr.write(`payments: ${problem}\n`);
  process.exit(1);
};

const readSettings = (): Config => {
  const read = loadConfig(process.env);
  return read.ok ? read.config : refuse(read.problems);
};

/** One line for what an operator can mend; anything else is a fault of ours and keeps its stack. */
const orRefuse = async <T>(step: () => T | Promise<T>): Promise<T> => {
  try {
    return await step();
  } catch (error) {
    const known = [DataFolderRefused, StoreUnavailable, SecretRefused, CheckpointBeyondHead];
    if (error instanceof Error && known.some((kind) => error instanceof kind)) {
      return refuse([error.message]);
    }
    throw error;
  }
};

const listen = async ({ app }: Service, { host, port }: Config): Promise<number> => {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      return refuse([`PORT: ${port} is in use; stop what uses it, or set another PORT`]);
    return refuse([`HOST, PORT: cannot listen on ${host}:${port} (${code ?? 'unknown error'})`]);
  }
  return (app.server.address() as AddressInfo).port;
};

const notForProduction = ({ provider, tokens }: Config): string[] => [
  ...(provider.url === undefined ? ['simulated card provider'] : []),
  ...(tokens.keys.kind === 'local' ? ['local signing key'] : []),
];

// Files of this process are its owner's alone, those that libraries make included.
process.umask(0o077);
const config = readSettings();
const folder: DataFolder = await orRefuse(() => openDataFolder(config.dataDir));
const { log, flush } = createLogger({
  level: config.logLevel as LogLevel,
  destination: process.stdout.isTTY ? { file: join(config.dataDir, 'service.log') } : 'stdout',
});

const die = (error: unknown, message: string): never => {
  const why = error instanceof Error ? error.message : 'unknown error';
  process.stderr.write(`payments: ${message}: ${why}\n`);
  log.fatal({ err: error }, message);
  flush();
  process.exit(1);
};
process.on('uncaughtException', (error) => die(error, 'uncaught exception'));
process.on('unhandledRejection', (error) => die(error, 'unhandled rejection'));

const service = await orRefuse(() =>
  openService(config, folder, log, (error) => die(error, 'the event store takes no more events')),
);

let stopping = false;
const stop = async (): Promise<void> => {
  if (stopping) return;
  stopping = true;
  setTimeout(() => die(new Error('the stop took too long'), 'stopped hard'), STOP_MS_MAX).unref();
  await service.stop();
  log.info('stopped: all events are on disk');
  if (process.stdout.isTTY) process.stdout.write('Stopped. All events are on disk.\n');
  flush();
  process.exit(0);
};
process.on('SIGTERM', stop);
process.on('SIGINT', stop);

const port = await listen(service, config);
const host = config.host.includes(':') ? `[${config.host}]` : config.host;
process.stderr.write(
  bannerOf(
    {
      version: manifest.version,
      dataDir: config.dataDir,
      events: service.eventsAtStart,
      readyMs: process.uptime() * 1000,
      baseUrl: `http://${host}:${port}`,
      notForProduction: notForProduction(config),
      warnings: config.warnings,
    },
    process.stderr,
  ),
);
