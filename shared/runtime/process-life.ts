/**
 * The life of a process that serves: settings, log, listening, signals and the way out, the same
 * for every mode (settings, "Commands"). What an operator can mend is said in one line on stderr
 * with exit code 1; anything else is a fault of ours and keeps its stack.
 */
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { type Config, loadConfig, type Mode } from './config.ts';
import { createLogger, type Log, type LogLevel } from './log.ts';

/** What has been opened: a server that does not listen yet, and how it all ends. */
export type Opened = { app: FastifyInstance; stop(): Promise<void> };

export type ProcessOptions<P, O extends Opened> = {
  mode: Mode;
  /** Errors whose message is one line for the operator. */
  refusals: readonly (abstract new (
    ...args: never[]
  ) => Error)[];
  /** Before the log is opened, which may lie in the data folder. */
  prepare(config: Config): P;
  open(deps: {
    config: Config;
    log: Log;
    prepared: P;
    /** Ends the process with code 1 and one line: what cannot be gone on with. */
    onFatal(error: Error): void;
  }): Promise<O>;
  /** What a person reads on stderr once it listens. */
  banner(opened: O, baseUrl: string, config: Config): string;
  /** What has been made sure of at the end, such as `all events are on disk`. */
  farewell: string;
};

/** What is left of the promised 10 s when a stop hangs. */
const STOP_MS_MAX = 9_000;

const reject = (problems: readonly string[]): never => {
  for (const problem of problems) process.stderr.write(`payments: ${problem}\n`);
  process.exit(1);
};

const readSettings = (mode: Mode): Config => {
  const read = loadConfig(process.env, mode);
  return read.ok ? read.config : reject(read.problems);
};

const listen = async ({ app }: Opened, { host, port }: Config): Promise<number> => {
  try {
    await app.listen({ host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE')
      return reject([`PORT: ${port} is in use; stop what uses it, or set another PORT`]);
    return reject([`HOST, PORT: cannot listen on ${host}:${port} (${code ?? 'unknown error'})`]);
  }
  return (app.server.address() as AddressInfo).port;
};

const baseUrlOf = ({ host }: Config, port: number): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;

/** Runs until a signal ends it. Never returns with an error: it exits. */
export const runProcess = async <P, O extends Opened>(
  options: ProcessOptions<P, O>,
): Promise<void> => {
  /** One line for what an operator can mend. */
  const orReject = async <T>(step: () => T | Promise<T>): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      if (error instanceof Error && options.refusals.some((kind) => error instanceof kind)) {
        return reject([error.message]);
      }
      throw error;
    }
  };

  // Files of this process are its owner's alone, those that libraries make included.
  process.umask(0o077);
  const config = readSettings(options.mode);
  const prepared = await orReject(() => options.prepare(config));
  const { log, flush } = createLogger({
    level: config.logLevel as LogLevel,
    destination: process.stdout.isTTY ? { file: join(config.dataDir, 'service.log') } : 'stdout',
  });
  // Whichever way it ends: lines wait a moment for others before they are written.
  process.on('exit', flush);

  const die = (error: unknown, message: string): never => {
    const why = error instanceof Error ? error.message : 'unknown error';
    process.stderr.write(`payments: ${message}: ${why}\n`);
    log.fatal({ err: error }, message);
    process.exit(1);
  };
  process.on('uncaughtException', (error) => die(error, 'uncaught exception'));
  process.on('unhandledRejection', (error) => die(error, 'unhandled rejection'));

  const onFatal = (error: Error): void => {
    if (options.refusals.some((kind) => error instanceof kind)) reject([error.message]);
    die(error, 'the event store takes no more events');
  };
  let opened: O | undefined;
  let stopping = false;
  const stop = async (): Promise<void> => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => die(new Error('the stop took too long'), 'stopped hard'), STOP_MS_MAX).unref();
    // Before it listens nothing has been taken on.
    await opened?.stop();
    log.info(`stopped: ${options.farewell}`);
    if (process.stdout.isTTY) process.stdout.write(`Stopped: ${options.farewell}.\n`);
    process.exit(0);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);

  opened = await orReject(() => options.open({ config, log, prepared, onFatal }));
  if (stopping) return;
  const port = await listen(opened, config);
  process.stderr.write(options.banner(opened, baseUrlOf(config, port), config));
};

/** In place of the path of a file, for a process that keeps everything in servers. Always throws. */
export const noFiles = (name?: string): never => {
  throw new Error(`a process that keeps no files needs no path for ${name ?? 'one'}`);
};
