/** `payments projections`: how far the read models are, and filling them anew. */
import { createInterface } from 'node:readline/promises';
import { Command } from 'commander';
import { sentBy } from './audit.ts';
import { type Client, jsonOf, openClient } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { postToFollowing } from './following-projector.ts';
import { columns, type Format, formatOption, note, print, printJson, styled } from './output.ts';
import { type Progress, startProgress } from './progress-bar.ts';

const PLACE = '/ops/v1/projections';

type Checksum = { documents: number; hash: string };
type Rebuilt = { events: number; seconds: number; equal: boolean; old: Checksum; new: Checksum };
type Filling = { done: number; total: number; perSecond: number; secondsLeft: number };
type Rebuild = Filling & {
  state: 'running' | 'done' | 'failed';
  startedAt: string;
  endedAt?: string;
  result?: Rebuilt;
  reason?: string;
};
type Status = {
  projection: string;
  state: string;
  checkpoint: string | null;
  head: string | null;
  lagEvents: number | null;
  lagSeconds: number | null;
  parked: number;
  reason?: string;
  rebuild: Rebuild | null;
};

const count = new Intl.NumberFormat('en-US');

const lagOf = ({ lagEvents, lagSeconds }: Status): string =>
  lagEvents === null || lagSeconds === null
    ? 'unknown'
    : `${count.format(lagEvents)} events, ${lagSeconds.toFixed(1)} s`;

const rowOf = (status: Status): string[] => [
  status.projection,
  status.state,
  status.checkpoint ?? 'start',
  status.head ?? 'none',
  lagOf(status),
  String(status.parked),
];

const rebuildLine = (rebuild: Rebuild): string => {
  const { state, startedAt, done, total, secondsLeft, reason } = rebuild;
  const far = `${count.format(done)}/${count.format(total)} events`;
  if (state === 'running') {
    return `rebuild running since ${startedAt}: ${far}, ${Math.ceil(secondsLeft)} s left`;
  }
  const end = state === 'done' ? far : `at ${far}: ${reason}`;
  return `rebuild ${state} ${rebuild.endedAt}: ${end}`;
};

const adviceFor = ({ state, parked }: Status): void => {
  if (state === 'stuck') note('It stands still while events come in: payments doctor');
  if (parked > 0) note('Some payments are parked: payments parked list');
};

const status = async ({ format }: { format: Format }): Promise<void> => {
  const client = await openClient({ scope: 'ops:admin' });
  const { projections } = await jsonOf<{ projections: Status[] }>(client.get(PLACE));
  if (format === 'json') return printJson(projections);
  const head = ['PROJECTION', 'STATE', 'CHECKPOINT', 'HEAD', 'BEHIND', 'PARKED'];
  print(...columns([head, ...projections.map(rowOf)]));
  for (const one of projections) {
    if (one.rebuild !== null) print(rebuildLine(one.rebuild));
    if (one.reason !== undefined) note(`reason: ${one.reason}`);
    adviceFor(one);
  }
};

const startRebuild = (client: Client): Promise<Response> =>
  postToFollowing(client, `${PLACE}/rebuild`, { accept: 'text/event-stream' }, (reason) =>
    reason === 'REBUILD_RUNNING' ? '; watch it: payments projections status' : '',
  );

/** Shows the progress of a rebuild, and gives its result. */
const follow = async (response: Response): Promise<Rebuilt> => {
  let progress: Progress | undefined;
  try {
    for await (const { event, data } of sentBy(response)) {
      const value = JSON.parse(data);
      if (event === 'failed') {
        throw new CommandFailed(
          `the rebuild failed, the old read models are served: ${value.reason}; start it again: payments projections rebuild`,
        );
      }
      if (event === 'result') return value;
      const { done, total } = value as Filling;
      progress ??= startProgress('rebuild', total);
      progress.update(Math.min(done, total));
    }
  } finally {
    progress?.stop();
  }
  throw new CommandFailed(
    'the connection to the projector was lost; see what became of it: payments projections status',
  );
};

const show = (rebuilt: Rebuilt): void => {
  const { events, seconds, equal, old, new: fresh } = rebuilt;
  const rate = count.format(Math.round(events / Math.max(seconds, 0.001)));
  print(
    `${count.format(events)} events in ${seconds.toFixed(1)} s (${rate}/s), ${count.format(fresh.documents)} documents`,
  );
  const hashes = `${old.hash.slice(0, 16)} ${equal ? '=' : '≠'} ${fresh.hash.slice(0, 16)}`;
  print(`checksum old ${equal ? '=' : '≠'} new: ${styled(equal ? 'green' : 'red', hashes)}`);
  if (!equal) {
    note(
      `The old read models were wrong (${count.format(old.documents)} documents). The new ones are served; what was wrong is gone.`,
    );
  }
};

const agrees = async (): Promise<boolean> => {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const said = await terminal.question(
      'Fill the read models anew from the event log? Reads go on meanwhile. [y/N] ',
    );
    return /^y(es)?$/i.test(said.trim());
  } finally {
    terminal.close();
  }
};

type RebuildOptions = { yes?: true; format: Format };

const rebuild = async ({ yes, format }: RebuildOptions, command: Command): Promise<void> => {
  if (yes !== true) {
    const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true;
    if (!isTerminal) command.error('error: without a terminal: payments projections rebuild --yes');
    if (!(await agrees())) throw new CommandFailed('nothing was done');
  }
  const client = await openClient({ scope: 'ops:admin' });
  const rebuilt = await follow(await startRebuild(client));
  if (format === 'json') printJson(rebuilt);
  else show(rebuilt);
};

/** The verb `projections` with its two verbs. */
export const projectionsCommand = (): Command => {
  const command = new Command('projections').description(
    'The read models: how far they are, and filling them anew from the event log.',
  );
  command
    .command('status')
    .description('Where they are, how far behind, and the rebuild that runs or ran last.')
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments projections status')
    .action(status);
  command
    .command('rebuild')
    .description(
      'Fills new ones beside those that are served, compares both, and switches at once.',
    )
    .option('--yes', 'do not ask; needed where there is no terminal')
    .addOption(formatOption())
    .addHelpText('after', '\nExample:\n  payments projections rebuild --yes')
    .action(rebuild);
  return command;
};
