/** The stand-in for an EventStoreDB as a process of its own, for services of several processes. */
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
export const standInEventStore = async (): Promise<StandInProcess> => {
  const child = spawn(NODE, ['test/support/eventstoredb-stand-in-main.ts', '--port', '0'], {
    cwd: ROOT,
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
