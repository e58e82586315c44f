/** What a person sees once everything answers. */
import { styleText } from 'node:util';

export type BannerFacts = {
  version: string;
  dataDir: string;
  /** How many events the log held at the start. */
  events: number;
  readyMs: number;
  baseUrl: string;
  /** Why this is not fit for production; empty when nothing speaks against it. */
  notForProduction: string[];
  /** Things in the settings that work but should be looked at. */
  warnings: readonly string[];
};

const count = new Intl.NumberFormat('en-US');

/** The banner's lines, without colour where `NO_COLOR` is set or the output is no terminal. */
export const bannerOf = (facts: BannerFacts, stream: NodeJS.WritableStream): string => {
  const { version, dataDir, events, readyMs, baseUrl, notForProduction, warnings } = facts;
  const bold = (text: string) => styleText('bold', text, { stream });
  const yellow = (text: string) => styleText('yellow', text, { stream });
  const noun = events === 1 ? 'event' : 'events';
  const lines = [
    `${bold(`payments ${version}`)}  mode embedded (${dataDir}, ${count.format(events)} ${noun})   ready in ${(readyMs / 1000).toFixed(1)} s`,
    `  API      ${baseUrl}/api/v1/payments`,
    `  Health   ${baseUrl}/health/ready        Metrics  ${baseUrl}/metrics`,
    ...warnings.map((warning) => yellow(`  Warning: ${warning}`)),
    ...(notForProduction.length === 0
      ? []
      : [yellow(`  Not for production: ${notForProduction.join(', ')}`)]),
    `Next:  export TOKEN=$(npx payments token)      then README, "First payment"`,
  ];
  return `${lines.join('\n')}\n`;
};
