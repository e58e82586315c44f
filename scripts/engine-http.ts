/** Engines that speak HTTP on one port of loopback. */
import { spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keptPort } from './free-ports.ts';

const START_MS_MAX = 20_000;

const responds = async (url: string): Promise<boolean> => {
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    return false;
  }
};

/**
 * Starts a server that outlives this process on the port of its folder, which gets its output, and
 * resolves once it responds. Throws Error, one line, when it does not.
 */
export const startHttpEngine = async (
  folder: string,
  command: string,
  argsOf: (port: number) => string[],
): Promise<{ url: string; pid: number }> => {
  const port = await keptPort(folder);
  const output = openSync(join(folder, 'server.log'), 'a');
  const server = spawn(command, argsOf(port), {
    detached: true,
    stdio: ['ignore', output, output],
  });
  server.unref();
  const url = `http://127.0.0.1:${port}`;
  const deadline = performance.now() + START_MS_MAX;
  while (server.pid !== undefined && server.exitCode === null && performance.now() < deadline) {
    if (await responds(url)) return { url, pid: server.pid };
    await delay(50);
  }
  server.kill();
  throw new Error(`it is not ready on port ${port}; see ${join(folder, 'server.log')}`);
};
