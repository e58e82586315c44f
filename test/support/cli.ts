/**
 * The command line in this process, as a person has it: an environment and streams of its own, its
 * exit code, and what it does when its process ends. A process of its own costs half a second: those
 * who need one take `runCliProcess`.
 */
import { PassThrough } from 'node:stream';
import { expect } from '@jest/globals';
import { runCommandLine } from '../../cli/run.ts';
import { cleanEnv } from './service-processes.ts';

export type CliRun = { code: number; stdout: string; stderr: string };

/** Puts these in the place of properties of `process`; gives what puts the old ones back. */
const replaceInProcess = (replaced: Record<string, unknown>): (() => void) => {
  const before = Object.keys(replaced).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)] as const,
  );
  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(process, name, { value, configurable: true, writable: true });
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor !== undefined) Object.defineProperty(process, name, descriptor);
    }
  };
};

const ENDINGS = ['exit', 'SIGINT', 'SIGTERM'] as const;

/** Does what the run has left to the end of its process, and takes its listeners away. */
const endAsProcess = (before: readonly (readonly unknown[])[]): void => {
  for (const [at, ending] of ENDINGS.entries()) {
    for (const listener of process.listeners(ending as 'exit')) {
      if (before[at]?.includes(listener)) continue;
      process.off(ending, listener);
      if (ending === 'exit') listener.call(process, 0);
    }
  }
};

const runAlone = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<CliRun> => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const listeners = ENDINGS.map((ending) => process.listeners(ending as 'exit'));
  const restore = replaceInProcess({
    env: { ...cleanEnv(), ...env },
    stdin: new PassThrough().end(),
    stdout: stdout.setEncoding('utf8'),
    stderr: stderr.setEncoding('utf8'),
  });
  try {
    const code = await runCommandLine(args);
    return { code, stdout: stdout.read() ?? '', stderr: stderr.read() ?? '' };
  } finally {
    restore();
    endAsProcess(listeners);
  }
};

let last: Promise<unknown> = Promise.resolve();

/**
 * Runs `payments <args>` to its end, after those that were called before: they have one `process`.
 * Throws what no verb expected.
 */
export const runCli = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<CliRun> => {
  const run = last.then(() => runAlone(args, env));
  last = run.catch(() => undefined);
  return run;
};

const saying = (said: string | RegExp): unknown =>
  typeof said === 'string' ? expect.stringContaining(said) : expect.stringMatching(said);

/** The run has ended with this exit code, and has said this on stderr. */
export const expectError = ({ code, stderr }: CliRun, exitCode: number, said: string | RegExp) =>
  expect([code, stderr]).toEqual([exitCode, saying(said)]);

/** The run is done, and has printed this. */
export const expectOutput = ({ code, stdout }: CliRun, said: string | RegExp) =>
  expect([code, stdout]).toEqual([0, saying(said)]);
