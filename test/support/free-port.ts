/**
 * Ports for servers that are started in a moment, below those that systems give to clients. Each of
 * Jest's workers has a block of them to itself, also beside another run of the tests: it listens at the
 * first port of its block for as long as it lives. So no other process takes a port that was free a moment ago.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const FIRST = 20_000;
const PER_BLOCK = 100;
const BLOCKS = 120;

type Block = { first: number; last: number };
const BLOCK = Symbol.for('payments.ports');
/** Each test file loads this module anew: the block is the worker's. */
const worker = globalThis as { [BLOCK]?: Promise<Block> };

const listening = async (port: number): Promise<Server | undefined> => {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
};

const takeBlock = async (): Promise<Block> => {
  for (let block = 0; block < BLOCKS; block += 1) {
    const first = FIRST + block * PER_BLOCK;
    const held = await listening(first);
    held?.unref();
    if (held !== undefined) return { first, last: 0 };
  }
  throw new Error('no block of ports');
};

/** A port where nothing listens, and where nothing else of the tests will. */
export const freePort = async (): Promise<number> => {
  worker[BLOCK] ??= takeBlock();
  const block = await worker[BLOCK];
  for (let attempts = 1; attempts < PER_BLOCK; attempts += 1) {
    block.last = (block.last % (PER_BLOCK - 1)) + 1;
    const port = block.first + block.last;
    const server = await listening(port);
    if (server === undefined) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
  throw new Error('no port');
};
