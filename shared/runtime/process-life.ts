/** A serving process: a problem of settings is one line and exit code 1, a bug a log line. */
import { executionAsyncResource } from 'node:async_hooks';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { styleText } from 'node:util';
import type { FastifyInstance } from 'fastify';
import type { Config } from './config.ts';
import { loadConfig } from './load-config.ts';
import { createLogger, framesOf, type Log } from './log.ts';
import { piecesOf } from './scheduling.ts';
import type { Mode } from './settings/table.ts';
import { openTraces, type Traces, TracesRefused } from './traces.ts';
import { VERSION } from './version.ts';

const kept: object[] = [];

/** Keeps one `process.nextTick` object: after a collection without one, later ones cost more. */
const keepTickObject = (): Promise<object> =>
  new Promise((resolve) => {
    process.nextTick(() => {
      const tickObject = executionAsyncResource();
      kept.push(tickObject);
      resolve(tickObject);
    });
  });

export type Opened = {
  app: FastifyInstance;
  /** For the banner, next to those of the settings. */
  warnings?: readonly string[];
  stop(): Promise<void>;
  /** Abandons calls to an engine that does not respond, so that `stop` ends in time. */
  giveUp?(): Promise<void>;
};

type ProcessOptions<P, O extends Opened> = {
  mode: Mode;
  /** Their message is one line that says how to fix it. */
  operatorErrors: readonly (abstract new (
    ...args: never[]
  ) => Error)[];
  /** Before the log is opened, whose file may be in the data folder. */
  prepare?(config: Config): P;
  open(deps: { config: Config; log: Log; prepared: P; onFatal(error: Error): void }): Promise<O>;
  banner(opened: O, baseUrl: string, config: Config): string | BannerFacts;
  /** Such as `all events are on disk`. */
  farewell: string;
};

/** Ends a stop that hangs, within the promised 10 s (docs/settings.md). */
const STOP_MS_MAX = 9_000;
/** Then a stop waits for no engine: after the command responses, before connections are cut. */
const GIVE_UP_MS = 7_300;

const exitWith = (problems: readonly string[]): never => {
  for (const problem of problems) process.stderr.write(`payments: ${problem}\n`);
  process.exit(1);
};

const readSettings = (mode: Mode): Config => {
  const read = loadConfig(process.env, mode);
  return read.ok ? read.config : exitWith(read.problems);
};

const listen = async ({ app }: Opened, { host, port }: Config): Promise<number> => {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      return exitWith([`PORT: ${port} is in use; stop what uses it, or set another PORT`]);
    return exitWith([`HOST, PORT: cannot listen on ${host}:${port} (${code ?? 'unknown error'})`]);
  }
  return (app.server.address() as AddressInfo).port;
};

const baseUrlOf = ({ host }: Config, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

type Health = { engines?: Record<string, { state: string; reason?: string }> };

const waitsForOf = async ({ app }: Opened): Promise<string[]> => {
  const { statusCode, body } = await app.inject('/health/ready');
  if (statusCode !== 503) return [];
  const { engines = {} } = JSON.parse(body) as Health;
  const down = Object.entries(engines).filter(([, { state }]) => state === 'down');
  return down.map(([name, { reason = 'down' }]) => `${name} (${reason})`);
};

/** Until a signal ends it. Throws any error that is not an operator error. */
export const runProcess = async <P, O extends Opened>(
  options: ProcessOptions<P, O>,
): Promise<void> => {
  const isForOperator = (error: unknown): error is Error =>
    [TracesRefused, ...options.operatorErrors].some((kind) => error instanceof kind);
  const orExit = async <T>(step: () => T | Promise<T>): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      if (isForOperator(error)) return exitWith([error.message]);
      throw error;
    }
  };

  if (process.argv.includes('--version')) {
    process.stdout.write(`payments ${VERSION}\n`);
    process.exit(0);
  }
  // A terminal or pipe without a reader must not end the service.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  await keepTickObject();
  // Also for files that libraries make.
  process.umask(0o077);
  const config = readSettings(options.mode);
  const prepared = await orExit(() => options.prepare?.(config) as P);
  const { log, flush } = createLogger({
    level: config.logLevel,
    destination: process.stdout.isTTY ? { file: join(config.dataDir, 'service.log') } : 'stdout',
  });
  process.prependListener('exit', flush);

  const die = (error: unknown, message: string): never => {
    const why = error instanceof Error ? error.message : 'unknown error';
    process.stderr.write(`payments: ${message}: ${why}\n`);
    log.fatal({ err: error, stack: framesOf(error) }, message);
    process.exit(1);
  };
  process.on('uncaughtException', (error) => die(error, 'uncaught exception'));
  process.on('unhandledRejection', (error) => die(error, 'unhandled rejection'));

  const onFatal = (error: Error): void => {
    if (isForOperator(error)) exitWith([error.message]);
    die(error, 'the process cannot go on');
  };
  let opened: O | undefined;
  let traces: Traces | undefined;
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    setTimeout(
      () => die(new Error(`closing took longer than ${STOP_MS_MAX} ms`), 'stop failed'),
      STOP_MS_MAX,
    ).unref();
    setTimeout(() => void opened?.giveUp?.(), GIVE_UP_MS).unref();
    await opened?.stop();
    await traces?.stop();
    log.info(`stopped: ${options.farewell}`);
    if (process.stdout.isTTY) process.stdout.write(`Stopped: ${options.farewell}.\n`);
    process.exit(0);
  };
  // SIGUSR1 would open a debugger, and memory holds card numbers (gaps §4); SIGUSR2 would end the process.
  process.on('SIGUSR1', () => log.warn('SIGUSR1 is ignored: no debugger is opened'));
  process.on('SIGUSR2', () => log.warn('SIGUSR2 is ignored'));
  // SIGHUP: the terminal is gone.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, stop);

  const { mode, traces: sent } = config;
  traces = sent && (await orExit(() => openTraces({ ...sent, mode, log })));
  opened = await orExit(() => options.open({ config, log, prepared, onFatal }));
  if (stopping) return;
  const port = await listen(opened, config);
  const waitsFor = await waitsForOf(opened);
  const facts = options.banner(opened, baseUrlOf(config, port), config);
  const warnings = [...config.warnings, ...(opened.warnings ?? [])];
  process.stderr.write(
    typeof facts === 'string' ? facts : bannerOf(facts, waitsFor, warnings, process.stderr),
  );
};

/** `fileOf` of a process that keeps no files: always throws. */
export const noFiles = (name?: string): never => {
  throw new Error(`a process that keeps no files needs no path for ${name ?? 'a file'}`);
};

type BannerFacts = {
  what: string;
  addresses: readonly (readonly [name: string, address: string])[];
  notForProduction?: readonly string[];
  next?: string;
};

const NAME_WIDTH = 8;
const ADDRESS_WIDTH = 44;

const addressLine = (pair: readonly (readonly [string, string])[]): string =>
  `  ${pair.map(([name, address]) => `${name.padEnd(NAME_WIDTH)} ${address}`.padEnd(ADDRESS_WIDTH)).join('  ')}`.trimEnd();

/** Coloured on a terminal without `NO_COLOR`. `waitsFor`: engines out of reach and why; empty when ready. */
const bannerOf = (
  { what, addresses, notForProduction = [], next }: BannerFacts,
  waitsFor: readonly string[],
  warnings: readonly string[],
  stream: NodeJS.WritableStream,
): string => {
  const bold = (text: string) => styleText('bold', text, { stream });
  const yellow = (text: string) => styleText('yellow', text, { stream });
  const ready =
    waitsFor.length === 0 ? `ready in ${process.uptime().toFixed(1)} s` : 'listens, not ready yet';
  const lines = [
    `${bold(`payments ${VERSION}`)}  ${what}   ${ready}`,
    ...piecesOf(addresses, 2).map(addressLine),
    ...waitsFor.map((engine) => yellow(`  Waits for: ${engine}`)),
    ...warnings.map((warning) => yellow(`  Warning: ${warning}`)),
    ...(notForProduction.length === 0
      ? []
      : [
          yellow(
            `  Not for production: ${notForProduction.join(', ')} (docs/production.md, payments doctor --production)`,
          ),
        ]),
    ...(next === undefined ? [] : [`Next:  ${next}`]),
  ];
  return `${lines.join('\n')}\n`;
};
