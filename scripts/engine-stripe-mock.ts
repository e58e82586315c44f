/**
 * Stripe's own stripe-mock, which checks the shape of each request against Stripe's description of
 * its API and keeps nothing. Built once from its published Go module; Go's checksum database says
 * that the module is the published one.
 */
import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CACHE, type Engine } from './engine.ts';
import { lackOfGo, runGo } from './engine-go.ts';
import { startServer } from './engine-server.ts';

const MODULE = 'github.com/stripe/stripe-mock';
const VERSION = 'v0.203.0';
const FILE = join(CACHE, `stripe-mock-${VERSION}`);

const build = async (log: (line: string) => void): Promise<void> => {
  log(`building ${VERSION} from its Go module; this takes about a minute, once`);
  const folder = `${FILE}.${process.pid}`;
  // One package at a time: a build of all at once takes more memory than small machines have.
  const args = ['install', '-p', '1', `${MODULE}@${VERSION}`];
  await runGo(args, { env: { ...process.env, GOBIN: folder } }, log);
  renameSync(join(folder, 'stripe-mock'), FILE);
  rmSync(folder, { recursive: true });
};

/** stripe-mock, which gives a value for STRIPE_MOCK_URL. */
export const stripeMock: Engine = {
  name: 'stripe-mock',
  available: () => (existsSync(FILE) ? undefined : lackOfGo()),
  start: async (folder, log) => {
    if (!existsSync(FILE)) await build(log);
    // Without an address for HTTPS it listens for that on every interface.
    const argsOf = (port: number) => [
      '-http-addr',
      `127.0.0.1:${port}`,
      '-https-addr',
      '127.0.0.1:0',
    ];
    const { address, pid } = await startServer(folder, FILE, argsOf);
    return { variables: { STRIPE_MOCK_URL: `http://${address}` }, pid };
  },
};
