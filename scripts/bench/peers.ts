/** `npm run bench -- --peers`: the same work done by other frameworks, in turns with this service. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Findings } from './page.ts';
import { type Installed, installPeer } from './peer-install.ts';
import { type Contestant, peersPictures, peersText } from './peers-text.ts';
import { outcomesBad } from './rounds.ts';
import { type Server, startServer } from './server.ts';
import { loadsOf, warmUp } from './service.ts';
import { createdPayments, inTurns, type Report, type Turn } from './turns.ts';
import { bytesOf, openWorkplace, serviceOrder, startBare } from './workplace.ts';

/** A peer: which packages it needs, which main it is, and whether an idle CPU is its own doing. */
type Peer = {
  name: string;
  group: string;
  main: string;
  env?: NodeJS.ProcessEnv;
  waits: { create: boolean; GET: boolean };
};

const ON_DISK = { create: true, GET: false };
const PEERS: readonly Peer[] = [
  { name: 'Express, a row per payment', group: 'express', main: 'express.js', waits: ON_DISK },
  { name: 'NestJS CQRS, durable', group: 'nest', main: 'nest.js', waits: ON_DISK },
  {
    name: 'NestJS CQRS, in memory',
    group: 'nest',
    main: 'nest.js',
    env: { MEMORY: '1' },
    waits: { create: false, GET: false },
  },
  // Each call waits for a file that is opened and closed in another thread.
  {
    name: 'emmett, its SQLite store',
    group: 'emmett',
    main: 'emmett.js',
    waits: { create: true, GET: true },
  },
];

const OURS = 'this service';
type LeftOut = { name: string; reason: string };

const installAll = (report: Report, leaveOut: (name: string, error: unknown) => void) => {
  const installed = new Map<string, Installed>();
  for (const { name, group } of PEERS) {
    try {
      if (!installed.has(group)) report(`installing ${group}`);
      installed.set(group, installed.get(group) ?? installPeer(group));
    } catch (error) {
      leaveOut(name, error);
    }
  }
  return installed;
};

/** Runs the bench. Throws Error when a server does not start. */
export const benchPeers = async (
  seconds: number,
  report: Report,
): Promise<Findings & { bad: number }> => {
  const leftOut: LeftOut[] = [];
  const leaveOut = (name: string, error: unknown): void => {
    const reason = String(Object(error).message);
    report(`${name} is left out: ${reason}`);
    leftOut.push({ name, reason });
  };
  const installed = installAll(report, leaveOut);
  const workplace = openWorkplace(seconds);
  const servers: Server[] = [];
  const started = async (server: Promise<Server>): Promise<Server> => {
    servers.push(await server);
    return server;
  };
  try {
    const service = await started(startServer(serviceOrder(workplace)));
    const ids = await createdPayments(workplace, service);
    const bytes = await bytesOf(workplace, service.url, ids[0] ?? '');
    const bare = await started(startBare(workplace, bytes));
    const turnsOf = (
      name: string,
      server: Server,
      own: readonly string[],
      waits: Peer['waits'],
    ): Turn[] =>
      loadsOf(workplace, server, bare, own).map((turn) => ({
        ...turn,
        name: `${name}: ${turn.name}`,
        waitsForDisk: waits[turn.name],
      }));
    const turns = turnsOf(OURS, service, ids, ON_DISK);
    for (const { name, group, main, env, waits } of PEERS) {
      const dist = installed.get(group)?.dist;
      if (dist === undefined) continue;
      const dataDir = join(workplace.folder, name.replaceAll(/\W+/g, '-'));
      mkdirSync(dataDir);
      const order = {
        args: [join(dist, main)],
        readyPath: '/ready',
        env: { ...workplace.env, ...env, DATA_DIR: dataDir },
        logFile: workplace.logFile(name),
      };
      try {
        const server = await started(startServer(order));
        report(`${name}: making payments`);
        turns.push(...turnsOf(name, server, await createdPayments(workplace, server), waits));
      } catch (error) {
        leaveOut(name, error);
      }
    }
    await warmUp(turns);
    const outcomes = await inTurns(turns, report);
    const contestants: Contestant[] = [OURS, ...PEERS.map(({ name }) => name)].flatMap((name) => {
      const create = outcomes[`${name}: create`];
      const get = outcomes[`${name}: GET`];
      return create && get ? [{ name, create, get }] : [];
    });
    const versions = [...installed.values()].flatMap((one) => one.versions);
    return {
      name: 'peers',
      text: peersText(contestants, leftOut, [...new Set(versions)]),
      pictures: peersPictures(contestants),
      bad: outcomesBad(outcomes),
    };
  } finally {
    for (const server of servers) await server.stop();
    workplace.remove();
  }
};
