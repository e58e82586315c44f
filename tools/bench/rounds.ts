/** Drives contestants in turns: figures of different minutes on one machine cannot be compared. */
import { setTimeout as wait } from 'node:timers/promises';
import type { Contestant, Workplace } from './contestants.ts';
import type { Kind, LoadResult } from './load.ts';
import { type Server, type startLoad, startServer } from './servers.ts';

/** Requests of one kind to one contestant in one round. `cpuUs` is its whole process's, for one request. */
export type Sample = LoadResult & { kind: Kind; name: string; cpuUs: number; megabytes: number };

/** The folder and the load of one run. */
export type Run = { place: Workplace; load: ReturnType<typeof startLoad> };

/** Read models may be written behind a create's response: that work is the create's. */
const AFTER_CREATES_MS = 100;
/**
 * Rounds' worth of requests, and their most, after which the engine has compiled the hot code. Its creates
 * are the payments to read.
 */
const WARM_UP_ROUNDS = 10;
const WARM_UP_MAX = 20_000;

/** Sends `amount` requests of one kind to a server and measures their cost to it. */
export const drive = async (
  { place, load }: Run,
  server: Server,
  [kind, amount]: [Kind, number],
  { keepsIds = false } = {},
): Promise<Sample> => {
  const { name, url } = server;
  const before = await server.usage();
  const result = await load.send({ name, url, token: place.token, kind, amount, keepsIds });
  if (kind === 'create') await wait(AFTER_CREATES_MS);
  const { cpuUs, rssBytes } = await server.usage();
  const each = (cpuUs - before.cpuUs) / result.requests;
  return { ...result, kind, name, cpuUs: each, megabytes: rssBytes / 1e6 };
};

/**
 * Drives all contestants in rounds, every second one in reverse order. Throws Error where a contestant
 * does not start.
 */
export const driveInTurns = async (
  run: Run,
  rounds: number,
  contestants: readonly Contestant[],
): Promise<Sample[]> => {
  const samples: Sample[] = [];
  const servers: Server[] = [];
  try {
    for (const contestant of contestants) servers.push(await startServer(contestant, run.place));
    const turns = (['create', 'GET'] as const)
      .flatMap((kind) => servers.map((server) => ({ server, kind, amount: server.amounts[kind] })))
      .filter(({ amount }) => amount > 0);
    for (const { server, kind, amount } of turns) {
      process.stderr.write(`bench: warming up ${server.name}, ${kind}\n`);
      const most = Math.min(WARM_UP_ROUNDS * amount, WARM_UP_MAX);
      await drive(run, server, [kind, most], { keepsIds: kind === 'create' });
    }
    for (let round = 1; round <= rounds; round += 1) {
      process.stderr.write(`bench: round ${round} of ${rounds}\n`);
      for (const { server, kind, amount } of round % 2 === 0 ? turns.toReversed() : turns)
        samples.push(await drive(run, server, [kind, amount]));
    }
    return samples;
  } finally {
    for (const server of servers) await server.stop();
  }
};
