/** Stand-ins for servers as processes of their own, for services of several processes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { NODE, ROOT } from './service.ts';

type StandInProcess = {
  url: string;
  process: ChildProcess;
  [Symbol.asyncDispose](): Promise<void>;
};

/** Its first line on stdout is its address. */
const start = async (main: string, port = 0): Promise<StandInProcess> => {
  const child = spawn(NODE, [`test/support/${main}`], {
    cwd: ROOT,
    env: { ...process.env, PORT: String(port) },
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

/** A MongoDB, on a free port or a given one. */
export const standInMongo = (port = 0) => start('mongodb-stand-in-main.ts', port);
