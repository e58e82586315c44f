/** Stand-ins for servers as processes of their own, for services of several processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { NODE, ROOT } from './service.ts';

export type StandInProcess = {
  url: string;
  process: ChildProcess;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Starts it on a free port; its first line on stdout is its address. */
const start = async (main: string): Promise<StandInProcess> => {
  const child = spawn(NODE, [`test/support/${main}`], {
    cwd: ROOT,
    env: { ...process.env, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    url: String(line).trim(),
    process: child,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    },
  };
};

/** An EventStoreDB. */
export const standInEventStore = () => start('eventstoredb-stand-in-main.ts');

/** A MongoDB. */
export const standInMongo = () => start('mongodb-stand-in-main.ts');
