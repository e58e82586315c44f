/** The breaks of a log: how verbs show them, and how a person acknowledges one. */
import type { LogBreak, LogBreaks } from '../audit/breaks.ts';
import type { AuditVerification } from '../audit/contract.ts';
import { describeBreak } from '../shared/event-store/chain.ts';
import { jsonOf, openClient } from './client.ts';
import { CommandFailed, columns, countOf, note, print } from './output.ts';

type Shown = LogBreak & { line?: number | undefined };

const nameOf = ({ stream, revision }: Pick<LogBreak, 'stream' | 'revision'>): string =>
  `${stream}@${revision}`;

export const placeText = (broken: Shown): string =>
  `${broken.line === undefined ? '' : `line ${broken.line}, `}${describeBreak(broken)}`;

/** A head is the log hash at a position (glossary); without one the last event is named by its own hash. */
export const headText = (head: AuditVerification['head']): string => {
  if (head === null) return 'no event';
  const { position, stream, revision, hash, logHash } = head;
  return logHash === undefined
    ? `last event ${stream} r${revision} ${hash}`
    : `head #${position} ${logHash}`;
};

/** A log counts as intact with its acknowledged breaks, so these are printed. */
export const printAcknowledged = ({ acknowledged }: Pick<LogBreaks<Shown>, 'acknowledged'>) => {
  const rows = acknowledged.map((one) => {
    const by = `by ${one.actor} at ${one.time}: ${one.note}`;
    return ['acknowledged', nameOf(one), placeText(one), by];
  });
  print(...columns(rows));
};

const rowOf = (broken: Shown): string[] => ['BREAK', nameOf(broken), placeText(broken)];

export const printBreaks = ({ count, named, acknowledged }: LogBreaks<Shown>): void => {
  printAcknowledged({ acknowledged });
  if (count < 2) return;
  print(...columns(named.map(rowOf)));
  if (count > named.length) print(`and ${countOf(count - named.length)} more`);
};

export const othersOf = ({ count }: Pick<LogBreaks, 'count'>): string =>
  count > 1 ? `; ${countOf(count)} breaks in all` : '';

/** Throws CommandFailed with exit code 3 and the first break that is not acknowledged, if there is one. */
export const failOnBreaks = (what: string, breaks: LogBreaks<Shown>): void => {
  const [broken] = breaks.named;
  for (const one of breaks.acknowledged)
    note(`acknowledged by ${one.actor}: ${placeText(one)}: ${one.note}`);
  if (broken === undefined) return;
  if (breaks.count > 1) note(...columns(breaks.named.map(rowOf)));
  throw new CommandFailed(
    `${what} failed verification at ${placeText(broken)}${othersOf(breaks)}`,
    3,
  );
};

/** Records that these breaks may stay. Throws CommandFailed where none is left to acknowledge. */
export const acknowledgeBreaks = async (
  { breaks }: Pick<AuditVerification, 'breaks'>,
  name: string,
  why: string,
): Promise<void> => {
  const named = breaks?.named.filter((one) => nameOf(one) === name) ?? [];
  if (named.length === 0) {
    const is = breaks?.acknowledged.some((one) => nameOf(one) === name);
    throw new CommandFailed(
      `${name} ${is ? 'is acknowledged already' : 'is no break of the log'}; the breaks by their names: payments verify --all`,
    );
  }
  const client = await openClient({ scope: 'ops:admin' });
  for (const { position: _, ...one } of named) {
    await jsonOf(client.post('/ops/v1/log/acknowledge', { ...one, note: why }));
    note(`acknowledged: ${placeText({ position: '', ...one })}`);
  }
};
