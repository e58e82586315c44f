/** `payments projections`: how far the read models are, and their rebuild. */
import { createInterface } from 'node:readline/promises';
import type { Command } from 'commander';
import type { ProjectionList } from '../projector/contract.ts';
import { postToFollowing, readOps } from './client.ts';
import { type Format, formatted, type Given, verb } from './options.ts';
import { CommandFailed, count, countOf, note, print, printJson, styled, table } from './output.ts';
import { AS_STREAM, streamResult } from './streams.ts';

const ROUTE = '/ops/v1/projections';

type Status = ProjectionList['projections'][number];
type Rebuild = NonNullable<Status['rebuild']>;
type Rebuilt = NonNullable<Rebuild['result']>;

const lagOf = ({ lagEvents, lagIsExact, lagSeconds }: Status): string =>
  lagEvents === null || lagSeconds === null
    ? 'unknown'
    : `${lagIsExact ? '' : 'at least '}${countOf(lagEvents)} events, ${lagSeconds.toFixed(1)} s`;

const statusTable = table<Status>({
  PROJECTION: ({ projection }) => projection,
  STATE: ({ state }) => state,
  CHECKPOINT: ({ checkpoint }) => checkpoint ?? 'start',
  HEAD: ({ head }) => head ?? 'none',
  BEHIND: lagOf,
  PARKED: ({ parked }) => String(parked),
});

const rebuildLine = (rebuild: Rebuild): string => {
  const { state, startedAt, done, total, estimated, secondsLeft, reason } = rebuild;
  const far = `${countOf(done)}/${estimated ? 'about ' : ''}${countOf(total)} events`;
  if (state === 'running')
    return `rebuild running since ${startedAt}: ${far}, ${Math.ceil(secondsLeft)} s left`;
  const end = state === 'done' ? far : `at ${far}: ${reason}`;
  return `rebuild ${state} ${rebuild.endedAt}: ${end}`;
};

const adviceFor = ({ state, parked }: Status): void => {
  if (state === 'stuck')
    note('The checkpoint stands still while events come in. Next: payments doctor');
  if (parked > 0) note('Some payments are parked. Next: payments parked list');
};

const status = async ({ format }: { format: Format }): Promise<void> => {
  const { projections } = await readOps<{ projections: Status[] }>(ROUTE);
  if (format === 'json') return printJson(projections);
  print(...statusTable(projections));
  for (const one of projections) {
    if (one.rebuild !== null) print(rebuildLine(one.rebuild));
    if (one.reason !== undefined) note(`reason: ${one.reason}`);
    adviceFor(one);
  }
};

const rebuildNow = (accept: boolean): Promise<Rebuilt> => {
  const path = `${ROUTE}/rebuild${accept ? '?accept=true' : ''}`;
  const next = (reason: string | null) =>
    reason === 'REBUILD_RUNNING' ? '; watch it: payments projections status' : '';
  return streamResult(postToFollowing(path, AS_STREAM, next), {
    what: 'rebuild',
    lost: 'the connection to the projector was lost; the state of the rebuild: payments projections status',
    failed: (data) =>
      `the rebuild failed, the old read models are served: ${JSON.parse(data).reason}; start it again: payments projections rebuild`,
  });
};

const show = (rebuilt: Rebuilt): void => {
  const { events, seconds, equal, old, new: fresh } = rebuilt;
  const rate = countOf(Math.round(events / Math.max(seconds, 0.001)));
  print(
    `${countOf(events)} events in ${seconds.toFixed(1)} s (${rate}/s), ${countOf(fresh.documents)} documents`,
  );
  const hashes = `${old.hash.slice(0, 16)} ${equal ? '=' : '≠'} ${fresh.hash.slice(0, 16)}`;
  print(`checksum old ${equal ? '=' : '≠'} new: ${styled(equal ? 'green' : 'red', hashes)}`);
  if (!equal && rebuilt.served) {
    note(
      `The old read models differed (${countOf(old.documents)} documents). Those made of the log are served now.`,
    );
  }
};

const moneyLine = ({ paymentId, served, inLog }: Rebuilt['money']['named'][number]): string => {
  if (inLog === null) return `${paymentId}  ${served.status} ${served.amount}, not in the log`;
  const logged: Record<string, unknown> = inLog;
  const differing = Object.entries(served).filter(([name, value]) => value !== logged[name]);
  const parts = differing.map(([name, value]) => `${name} ${value}, in the log ${logged[name]}`);
  return `${paymentId}  ${parts.join('; ')}`;
};

/** Throws CommandFailed with exit code 3 for what a person has to decide or to mend. */
const rejectOddities = ({ served, money, parked }: Rebuilt): void => {
  for (const { paymentId, revision, reason } of parked)
    note(`parked: ${paymentId} at revision ${revision}: ${reason}`);
  for (const one of money.named) note(moneyLine(one));
  if (!served)
    throw new CommandFailed(
      `not switched: the money of ${count(money.count, 'payment')} is another in the log than in the served read models, which may be the right ones; payments verify --all, payments reconcile, and if the log is right: payments projections rebuild --accept`,
      3,
    );
  if (parked.length > 0)
    throw new CommandFailed(
      `${count(parked.length, 'payment')} parked: the new read models could not take the events; payments verify --read-models says the same, payments parked list since when, payments verify --all whether the log was changed`,
      3,
    );
};

const isConfirmed = async (): Promise<boolean> => {
  using terminal = createInterface({ input: process.stdin, output: process.stderr });
  const line = await terminal.question(
    'Rebuild the read models from the event log? Reads go on meanwhile. [y/N] ',
  );
  return /^y(es)?$/i.test(line.trim());
};

const rebuild = async (options: Given<never, 'yes' | 'accept'>, command: Command) => {
  const { yes, accept = false, format } = options;
  if (yes !== true) {
    const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true;
    if (!isTerminal) command.error('error: without a terminal: payments projections rebuild --yes');
    if (!(await isConfirmed())) throw new CommandFailed('not confirmed, so nothing was rebuilt');
  }
  const rebuilt = await rebuildNow(accept);
  if (format === 'json') printJson(rebuilt);
  else show(rebuilt);
  rejectOddities(rebuilt);
};

export const projectionsCommand = (): Command =>
  verb('projections', 'payments projections status')
    .description('Shows how far the read models are, and rebuilds them from the event log.')
    .addCommand(
      formatted('status', 'payments projections status')
        .description(
          'Shows the checkpoint, how far it is behind, and the running or the last rebuild.',
        )
        .action(status),
    )
    .addCommand(
      formatted(
        'rebuild',
        'payments projections rebuild --yes',
        'payments projections rebuild --yes --accept',
      )
        .description(
          'Builds a new generation while the old one is served, compares both, and switches to the new one, unless they differ in money. Exit code 3: not switched, or payments are parked.',
        )
        .option('--accept', 'switch also if the amounts differ from the log')
        .option('--yes', 'do not ask for confirmation; needed where there is no terminal')
        .action(rebuild),
    );
