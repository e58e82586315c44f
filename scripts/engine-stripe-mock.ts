/**
 * Stripe's own stripe-mock, which checks the shape of each request against Stripe's description of
 * its API and keeps nothing. Built once from its published Go module; Go's checksum database says
 * that the module is the published one.
 */
import { spawn } from 'node:child_process';
import { existsSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Engine } from './engine.ts';
import { CACHE, lackOfGo, runGo } from './engine-go.ts';
import { keptPort } from './engine-ports.ts';

const MODULE = 'github.com/stripe/stripe-mock';
const VERSION = 'v0.203.0';
const FILE = join(CACHE, `stripe-mock-${VERSION}`);
const START_MS_MAX = 20_000;

const build = async (log: (line: string) => void): Promise<void> => {
  log(`building ${VERSION} from its Go module; this takes about a minute, once`);
  const folder = `${FILE}.${process.pid}`;
  // One package at a time: a build of all at once takes more memory than small machines have.
  const args = ['install', '-p', '1', `${MODULE}@${VERSION}`];
  await runGo(args, { env: { ...process.env, GOBIN: folder } }, log);
  renameSync(join(folder, 'stripe-mock'), FILE);
  rmSync(folder, { recursive: true });
};

const isReady = async (url: string): Promise<boolean> => {
  try {
    await (await fetch(url)).text();
    return true;
  } catch {
    return false;
  }
};

/** stripe-mock, which gives a value for STRIPE_MOCK_URL. */
export const stripeMock: Engine = {
  name: 'stripe-mock',
  available: () => (existsSync(FILE) ? undefined : lackOfGo()),
  start: async (folder, log) => {
    if (!existsSync(FILE)) await build(log);
    const port = await keptPort(folder);
    const output = openSync(join(folder, 'server.log'), 'a');
    // Without an address for HTTPS it listens for that on every interface.
    const addresses = ['-http-addr', `127.0.0.1:${port}`, '-https-addr', '127.0.0.1:0'];
    const server = spawn(FILE, addresses, { detached: true, stdio: ['ignore', output, output] });
    server.unref();
    const url = `http://127.0.0.1:${port}`;
    const deadline = performance.now() + START_MS_MAX;
    while (server.pid !== undefined && server.exitCode === null && performance.now() < deadline) {
      if (await isReady(url)) return { variables: { STRIPE_MOCK_URL: url }, pid: server.pid };
      await delay(50);
    }
    server.kill();
    throw new Error(`it is not ready on port ${port}; see ${join(folder, 'server.log')}`);
  },
};
