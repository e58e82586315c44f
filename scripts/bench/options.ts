/** The arguments of `npm run bench`. */
import { parseArgs } from 'node:util';

/** What is to be measured, and how long each round takes. */
export type Options = {
  mode: 'service' | 'scale' | 'peers' | 'traces' | 'eventstoredb' | 'webhooks';
  seconds: number;
  /** For `scale`: how many payments there are at each measurement. */
  sizes: number[];
  /** Write tables and pictures into docs/. */
  write: boolean;
};

/** What `--help` prints. */
export const HELP = `npm run bench [-- options]: CPU, rate and latency of a create and a GET, in turns with a bare server

  --eventstoredb     a command API and a query API on EVENTSTOREDB_URL and MONGODB_URL, or on the stand-ins
                     of the tests, beside SQLite
  --scale [payments] the curve at 10,000, 100,000, 300,000 and 1,000,000 payments, or up to so many
  --peers            beside Express, NestJS and emmett, installed in a temporary folder
  --webhooks         with one webhook endpoint, in turns with none
  --traces           with traces off, at 10 % and at 100 %, in turns
  --seconds <n>      how long each round takes; 4
  --write            writes the tables and pictures into docs/performance.md and docs/pictures
`;

/** Arguments that cannot be used; the message is one line. */
export class BadArguments extends Error {}

const SIZES = [10_000, 100_000, 300_000, 1_000_000];
const SIZES_MAX = 10_000_000;
const SECONDS = 4;
const SECONDS_MAX = 60;

const sizesUpTo = (text: string): number[] => {
  const largest = Number(text.replaceAll(/[_,]/g, ''));
  if (!Number.isInteger(largest) || largest < 1000 || largest > SIZES_MAX)
    throw new BadArguments(`--scale ${text}: a number of payments from 1000 to ${SIZES_MAX}`);
  return [...SIZES.filter((size) => size < largest), largest];
};

const secondsOf = (text: string): number => {
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= SECONDS_MAX))
    throw new BadArguments(`--seconds ${text}: a number above 0, at most ${SECONDS_MAX}`);
  return seconds;
};

const parse = (args: readonly string[]) => {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        eventstoredb: { type: 'boolean' },
        scale: { type: 'boolean' },
        peers: { type: 'boolean' },
        webhooks: { type: 'boolean' },
        traces: { type: 'boolean' },
        write: { type: 'boolean' },
        help: { type: 'boolean' },
        seconds: { type: 'string' },
      },
    });
  } catch (error) {
    const [line = ''] = String(Object(error).message).split('\n');
    throw new BadArguments(line);
  }
};

/** The options, or undefined where help is wanted. Throws BadArguments. */
export const optionsOf = (args: readonly string[]): Options | undefined => {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const named = ['eventstoredb', 'scale', 'peers', 'webhooks', 'traces'] as const;
  const modes = named.filter((mode) => values[mode]);
  const [mode = 'service', second] = modes;
  if (second !== undefined) throw new BadArguments(`--${mode} and --${second}: one of them`);
  const [size, ...rest] = positionals;
  const surplus = mode === 'scale' ? rest[0] : size;
  if (surplus !== undefined) throw new BadArguments(`${surplus}: not an option; see --help`);
  return {
    mode,
    seconds: secondsOf(values.seconds ?? String(SECONDS)),
    sizes: size === undefined ? SIZES : sizesUpTo(size),
    write: values.write === true,
  };
};
