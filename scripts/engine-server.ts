/** Engines that listen on one port of loopback. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from './free-ports.ts';

const START_MS_MAX = 20_000;

/** A folder keeps its port, so that a server started again has the same address. */
const keptPort = async (folder: string): Promise<number> => {
  const file = join(folder, 'port');
  if (existsSync(file)) return Number(readFileSync(file, 'utf8'));
  const [port = 0] = await freePorts(1);
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, String(port));
  return port;
};

/** Whether a server responds to HTTP. */
const respondsToHttp = async (address: string): Promise<boolean> => {
  try {
    await (await fetch(`http://${address}`)).text();
    return true;
  } catch {
    return false;
  }
};

/**
 * Starts a server that outlives this process on the port of its folder, which gets its output, and
 * resolves with its host and port once it is ready. Throws Error, one line, when it does not become so.
 */
export const startServer = async (
  folder: string,
  command: string,
  argsOf: (port: number) => string[],
  isReady = respondsToHttp,
): Promise<{ address: string; pid: number }> => {
  const port = await keptPort(folder);
  const output = openSync(join(folder, 'server.log'), 'a');
  const server = spawn(command, argsOf(port), {
    detached: true,
    stdio: ['ignore', output, output],
  });
  server.unref();
  const address = `127.0.0.1:${port}`;
  const deadline = performance.now() + START_MS_MAX;
  while (server.pid !== undefined && server.exitCode === null && performance.now() < deadline) {
    if (await isReady(address)) return { address, pid: server.pid };
    await delay(50);
  }
  server.kill();
  throw new Error(`it is not ready on port ${port}; see ${join(folder, 'server.log')}`);
};
