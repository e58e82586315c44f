/** `npm run bench -- --traces`: what traces cost a create and a GET, services in turns with one another. */
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo, Server as NetServer } from 'node:net';
import { join } from 'node:path';
import type { LoadOrder } from './load.ts';
import type { Findings } from './page.ts';
import { cpuUsOf, middleOf, type Round } from './rounds.ts';
import { type Server, startServer } from './server.ts';
import { number, table } from './text.ts';
import { createdPayments, load, measured, type Report } from './turns.ts';
import { getOrder, openWorkplace, postOrder, serviceOrder, type Workplace } from './workplace.ts';

const ROUNDS = 7;

/** A collector that takes everything and keeps nothing. */
const startCollector = async (): Promise<NetServer> => {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(200).end());
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return server;
};

/** Services that differ in their settings alone, by name; the first is what the others are compared with. */
const variantsOf = (endpoint: string): [string, NodeJS.ProcessEnv][] => {
  const on = (ratio: string) => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_TRACES_SAMPLER_ARG: ratio,
  });
  return [
    ['off', {}],
    ['10 %', on('0.1')],
    ['100 %', on('1')],
    // Nothing listens on this port.
    ['100 %, no collector', { ...on('1'), OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' }],
  ];
};

/** One service, its loads, and what each round of them came to. */
type Variant = {
  name: string;
  server: Server;
  orders: Record<'create' | 'GET', () => LoadOrder>;
  rounds: Record<'create' | 'GET', Round[]>;
};

const start = async (
  workplace: Workplace,
  name: string,
  env: NodeJS.ProcessEnv,
): Promise<Variant> => {
  const dataDir = join(workplace.folder, name.replaceAll(/\W/g, '-'));
  mkdirSync(dataDir, { mode: 0o700 });
  const own = { ...workplace, env: { ...workplace.env, ...env, DATA_DIR: dataDir } };
  const server = await startServer(serviceOrder(own, name.replaceAll(/\W/g, '-')));
  const ids = await createdPayments(own, server);
  const orders = {
    create: () => postOrder(own, server.url),
    GET: () => getOrder(own, server.url, ids),
  };
  await load(orders.GET());
  return { name, server, orders, rounds: { create: [], GET: [] } };
};

const cell = (rounds: readonly Round[], off: readonly Round[]): string => {
  const middle = middleOf(rounds.map(cpuUsOf));
  const ratios = rounds.map((round, at) => cpuUsOf(round) / cpuUsOf(off[at] ?? round));
  return `${number(middle)}, ${middleOf(ratios).toFixed(2)}`;
};

const tableOf = (variants: readonly Variant[]): string => {
  const [off] = variants;
  const rows = variants.map(({ name, server, rounds }) => {
    const cells = (['create', 'GET'] as const).map((load) =>
      cell(rounds[load], off?.rounds[load] ?? []),
    );
    return [name, ...cells, (server.readyMs / 1000).toFixed(2)];
  });
  const head = ['traces', 'create: CPU µs, of off', 'GET: CPU µs, of off', 'start to ready, s'];
  return table(head, rows);
};

/** Runs the bench. Throws Error when a server does not start. */
export const benchTraces = async (
  seconds: number,
  report: Report,
): Promise<Findings & { bad: number }> => {
  const workplace = openWorkplace(seconds);
  const collector = await startCollector();
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const variants: Variant[] = [];
  try {
    for (const [name, env] of variantsOf(endpoint))
      variants.push(await start(workplace, name, env));
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const kind of ['create', 'GET'] as const) {
        for (const { name, server, orders, rounds } of variants) {
          const came = await measured(server, orders[kind]());
          rounds[kind].push(came);
          report(`${kind}, traces ${name}: ${Math.round(cpuUsOf(came))} µs`);
        }
      }
    }
    const all = variants.flatMap(({ rounds }) => [...rounds.create, ...rounds.GET]);
    const bad = all.reduce((sum, round) => sum + round.bad, 0);
    return { name: 'traces', text: tableOf(variants), pictures: {}, bad };
  } finally {
    for (const { server } of variants) await server.stop();
    collector.close();
    workplace.remove();
  }
};
