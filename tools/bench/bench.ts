/** `npm run bench`, see README.md. Progress goes to stderr; exit code 1 when a response was not 2xx. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { benchCeiling } from './ceiling.ts';
import {
  bare,
  bareNode,
  type Contestant,
  checksAndWrites,
  installPeers,
  openWorkplace,
  ours,
  serviceIn,
} from './contestants.ts';
import { printFloors, printMiddles, printRatios } from './page.ts';
import { driveInTurns, type Run, type Sample } from './rounds.ts';
import { benchScale } from './scale.ts';
import { startLoad } from './servers.ts';

const HELP = `npm run bench [-- options]: creates and GETs, in turns with other servers

  --rounds <n>        how many rounds, 12 where it is absent
  --against <folder>  in turns with the service of another checkout, which has its node_modules
  --ceiling           what each part of several processes costs, and its limit
  --scale             the curve at 1,000, 10,000 and 100,000 payments
  --payments <n>      --scale at this size alone; may be repeated; from 100 on
`;
const OPTIONS = {
  rounds: { type: 'string' },
  against: { type: 'string' },
  ceiling: { type: 'boolean' },
  scale: { type: 'boolean' },
  payments: { type: 'string', multiple: true },
  help: { type: 'boolean' },
} as const;
const ROUNDS = '12';
const SIZES = ['1000', '10000', '100000'];
const PAYMENTS_MIN = 100;
/** Two processes with the same code differ by some per cent, so a comparison starts each service again. */
const STARTS = 3;

/** Throws RangeError for a text that is no whole number from `least` on. */
const countOf = (text: string, least: number): number => {
  const count = Number(text.replaceAll(/[_,]/g, ''));
  if (Number.isSafeInteger(count) && count >= least) return count;
  throw new RangeError(`${text}: a whole number from ${least} on`);
};

/** Prints the page. Resolves to the number of bad responses. Throws where a server does not start. */
const benchService = async (
  run: Run,
  rounds: number,
  services: readonly Contestant[],
  others: readonly Contestant[],
): Promise<number> => {
  const all = [bare, ...services, ...others];
  const starts = services.length > 1 ? STARTS : 1;
  const samples: Sample[] = [];
  for (let start = 0; start < starts; start += 1) {
    const contestants = start % 2 === 0 ? all : all.toReversed();
    samples.push(...(await driveInTurns(run, Math.ceil(rounds / starts), contestants)));
  }
  const names = [bare, ...others, ...services.slice(1)].map(({ name }) => name);
  printMiddles(samples, [ours.name, ...names]);
  printRatios(samples, ours.name, names);
  for (const { name } of services)
    printFloors(samples, name, { bare: bare.name, least: checksAndWrites.name });
  return samples.reduce((sum, { bad }) => sum + bad, 0);
};

const { values } = parseArgs({ options: OPTIONS });

const measure = async (): Promise<number> => {
  const rounds = countOf(values.rounds ?? ROUNDS, 1);
  const sizes = (values.payments ?? SIZES).map((size) => countOf(size, PAYMENTS_MIN));
  const place = openWorkplace();
  const load = startLoad();
  const run = { place, load };
  try {
    if (values.ceiling) return await benchCeiling(run);
    if (values.scale || values.payments) return await benchScale(run, sizes);
    if (values.against === undefined)
      return await benchService(
        run,
        rounds,
        [ours],
        [bareNode, checksAndWrites, ...installPeers()],
      );
    // npm runs scripts in the project's folder; the path is from the user's.
    const folder = resolve(process.env.INIT_CWD ?? '.', values.against);
    return await benchService(run, rounds, [ours, serviceIn(folder, 'the other checkout')], []);
  } finally {
    load.end();
    place.remove();
  }
};

if (values.help) process.stdout.write(HELP);
else process.exitCode = (await measure()) > 0 ? 1 : 0;
