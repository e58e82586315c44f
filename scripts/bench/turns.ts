/** Drives servers in turns: figures of different times on one machine cannot be compared. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { LoadOrder, LoadResult } from './load.ts';
import {
  cpuUsOf,
  type Judged,
  judge,
  type Outcome,
  outcomeOf,
  type Pair,
  type Round,
} from './rounds.ts';
import { onCpu, type Server } from './server.ts';
import { postOrder, type Workplace } from './workplace.ts';

/** How many pairs of each load have to be undisturbed, and how many more are driven at most. */
const ROUNDS = 3;
const REPEATS_MAX = 3;

/** Sends a round of load, from the other CPU. */
export const load = async (order: LoadOrder): Promise<LoadResult> => {
  const main = join(import.meta.dirname, 'load.ts');
  const [file, args] = onCpu(1, [process.execPath, main]);
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify(order));
  const result = await text(child.stdout);
  if (result === '') throw new Error(`the load on ${order.url} ended without a result`);
  return JSON.parse(result);
};

/** Sends a round of load and measures what it cost the server. */
export const measured = async (server: Server, order: LoadOrder): Promise<Round> => {
  await server.usage();
  const { ids: _, firstBad, ...result } = await load(order);
  if (firstBad !== undefined) process.stderr.write(`${order.method} ${order.url}: ${firstBad}\n`);
  return { ...result, ...(await server.usage()) };
};

const PAYMENTS = 5000;
const FILL_SECONDS_MAX = 60;

/** Makes payments through a server's own API and returns their ids. Throws Error where most fail. */
export const createdPayments = async (workplace: Workplace, { url }: Server): Promise<string[]> => {
  const limits = { seconds: FILL_SECONDS_MAX, requestsMax: PAYMENTS, collect: true };
  const { ids, requests, firstBad } = await load({ ...postOrder(workplace, url), ...limits });
  if (ids.length < requests / 2) throw new Error(`creates were not 2xx: ${firstBad}`);
  return ids;
};

/** A load on one of our servers beside one on the bare server. */
export type Turn<Name extends string = string> = {
  name: Name;
  server: Server;
  order: () => LoadOrder;
  bare: { server: Server; order: LoadOrder };
  /** Writes to the disk before it responds: such a server need not be busy. */
  waitsForDisk: boolean;
};

/** Gets a line of progress. */
export type Report = (line: string) => void;

/**
 * Drives all loads in turns, bare before each, three rounds; a load with a disturbed round has another
 * one, up to three times.
 */
export const inTurns = async <Name extends string>(
  turns: readonly Turn<Name>[],
  report: Report,
): Promise<Record<Name, Outcome>> => {
  const pairs = new Map<Name, Pair[]>();
  const judgedOf = ({ name, waitsForDisk }: Turn<Name>): Judged[] =>
    judge(pairs.get(name) ?? [], waitsForDisk);
  const lacks = (turn: Turn<Name>): boolean =>
    judgedOf(turn).filter(({ disturbance }) => disturbance === undefined).length < ROUNDS;
  for (let round = 1; round <= ROUNDS + REPEATS_MAX; round += 1) {
    for (const turn of turns.filter(lacks)) {
      const bare = await measured(turn.bare.server, turn.bare.order);
      const ours = await measured(turn.server, turn.order());
      pairs.set(turn.name, [...(pairs.get(turn.name) ?? []), { bare, ours }]);
      const share = outcomeOf(judgedOf(turn)).rounds.at(-1);
      const costs = `${Math.round(cpuUsOf(ours))} µs beside ${Math.round(cpuUsOf(bare))}`;
      report(`${turn.name}, round ${round}: ${costs}, ${share}`);
    }
  }
  const outcomes = turns.map((turn) => [turn.name, outcomeOf(judgedOf(turn))]);
  return Object.fromEntries(outcomes);
};
