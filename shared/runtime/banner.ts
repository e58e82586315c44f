import { styleText } from 'node:util';
import manifest from '../../package.json' with { type: 'json' };

type BannerFacts = {
  what: string;
  addresses: readonly (readonly [name: string, address: string])[];
  /** Engines out of reach, with reasons; empty where the process is ready. */
  waitsFor: readonly string[];
  notForProduction: readonly string[];
  warnings: readonly string[];
  next?: string;
};

const NAME_WIDTH = 8;
const ADDRESS_WIDTH = 44;

const pairs = <T>(items: readonly T[]): T[][] =>
  items.flatMap((_, at) => (at % 2 === 0 ? [items.slice(at, at + 2)] : []));

const addressLine = (pair: readonly (readonly [string, string])[]): string =>
  `  ${pair.map(([name, address]) => `${name.padEnd(NAME_WIDTH)} ${address}`.padEnd(ADDRESS_WIDTH)).join('  ')}`.trimEnd();

/** Without colour where `NO_COLOR` is set or the output is no terminal. */
export const bannerOf = (facts: BannerFacts, stream: NodeJS.WritableStream): string => {
  const { what, addresses, waitsFor, notForProduction, warnings, next } = facts;
  const bold = (text: string) => styleText('bold', text, { stream });
  const yellow = (text: string) => styleText('yellow', text, { stream });
  const ready =
    waitsFor.length === 0 ? `ready in ${process.uptime().toFixed(1)} s` : 'listens, not ready yet';
  const lines = [
    `${bold(`payments ${manifest.version}`)}  ${what}   ${ready}`,
    ...pairs(addresses).map(addressLine),
    ...waitsFor.map((engine) => yellow(`  Waits for: ${engine}`)),
    ...warnings.map((warning) => yellow(`  Warning: ${warning}`)),
    ...(notForProduction.length === 0
      ? []
      : [
          yellow(
            `  Not for production: ${notForProduction.join(', ')} (docs/production.md, payments doctor --production)`,
          ),
        ]),
    ...(next === undefined ? [] : [`Next:  ${next}`]),
  ];
  return `${lines.join('\n')}\n`;
};
