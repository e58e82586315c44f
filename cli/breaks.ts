/** How the verbs show the breaks of a log: by name, with the place and the reason. */
import type { LogBreak, LogBreaks } from '../shared/event-store/breaks.ts';
import { describeBreak } from '../shared/event-store/verify-chain.ts';
import { CommandFailed } from './command-failed.ts';
import { columns, counted, note, print } from './output.ts';

type Shown = LogBreak & { line?: number | undefined };

/** The name that a person acknowledges a break by. */
export const nameOf = ({ stream, revision }: Pick<LogBreak, 'stream' | 'revision'>): string =>
  `${stream}@${revision}`;

/** The place of a break, and why it is one. */
export const placeOf = (broken: Shown): string =>
  `${broken.line === undefined ? '' : `line ${broken.line}, `}${describeBreak(broken)}`;

/** Prints what was acknowledged: whoever takes the log for intact takes this with it. */
export const printAcknowledged = ({ acknowledged }: Pick<LogBreaks<Shown>, 'acknowledged'>): void =>
  print(
    ...columns(
      acknowledged.map((one) => [
        'acknowledged',
        nameOf(one),
        placeOf(one),
        `by ${one.actor} at ${one.time}: ${one.note}`,
      ]),
    ),
  );

const rowOf = (broken: Shown): string[] => ['BREAK', nameOf(broken), placeOf(broken)];

/** Prints the breaks by name where there are several, and what was acknowledged. */
export const printBreaks = ({ count, named, acknowledged }: LogBreaks<Shown>): void => {
  printAcknowledged({ acknowledged });
  if (count < 2) return;
  print(...columns(named.map(rowOf)));
  if (count > named.length) print(`and ${counted(count - named.length)} more`);
};

/** How many breaks there are beside the first one. */
export const othersOf = ({ count }: Pick<LogBreaks, 'count'>): string =>
  count > 1 ? `; ${counted(count)} breaks in all` : '';

/**
 * Ends the verb where what it has written does not verify. Throws CommandFailed with exit code 3 and the
 * first break that nobody has acknowledged.
 */
export const failOnBreaks = (what: string, breaks: LogBreaks<Shown>): void => {
  const [broken] = breaks.named;
  for (const one of breaks.acknowledged)
    note(`acknowledged by ${one.actor}: ${placeOf(one)}: ${one.note}`);
  if (broken === undefined) return;
  if (breaks.count > 1) note(...columns(breaks.named.map(rowOf)));
  throw new CommandFailed(
    `${what} failed verification at ${placeOf(broken)}${othersOf(breaks)}`,
    3,
  );
};
