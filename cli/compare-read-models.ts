/** `payments verify --read-models`: all read models against the log; exit code 3 where they differ. */
import type { ReadModelsComparison } from '../projector/contract.ts';
import { serverSentEvents } from './audit.ts';
import { openClient } from './client.ts';
import { CommandFailed } from './command-failed.ts';
import { postToFollowing } from './following-projector.ts';
import { columns, counted, type Format, print, printJson, styled } from './output.ts';
import { startProgress } from './progress-bar.ts';

const PATH = '/ops/v1/projections/compare';

const compare = async (): Promise<ReadModelsComparison> => {
  const client = await openClient({ scope: 'ops:admin' });
  const response = await postToFollowing(client, PATH, { accept: 'text/event-stream' });
  const progress = startProgress('compare', 1);
  try {
    for await (const { event, data } of serverSentEvents(response)) {
      const value = JSON.parse(data);
      if (event === 'failed')
        throw new CommandFailed(`the comparison failed: ${value.reason}; start it again`);
      if (event === 'progress') progress.update(value.done, { total: value.total });
      if (event === 'result') return value;
    }
  } finally {
    progress.stop();
  }
  throw new CommandFailed('the connection was lost before the result; start the comparison again');
};

/**
 * Compares all read models with the log and prints the result. Throws CommandFailed, with exit code 3
 * where a payment differs.
 */
export const compareReadModels = async (format: Format): Promise<void> => {
  const found = await compare();
  const { documents, payments, differences, kinds, named } = found;
  if (format === 'json') printJson(found);
  else if (differences > 0)
    print(...columns(named.map(({ paymentId, kind, detail }) => [paymentId, kind, detail])));
  if (differences > 0) {
    const each = Object.entries(kinds).map(([kind, n]) => `${counted(n)} ${kind}`);
    throw new CommandFailed(
      `${counted(differences)} read models differ from the log (${each.join(', ')}); is the log as it was written? payments verify --all. If it is: ${kinds.parked === undefined ? '' : 'payments parked list, and '}payments projections rebuild`,
      3,
    );
  }
  if (format === 'json') return;
  const what = `${counted(documents)} documents, ${counted(payments)} payments in the log`;
  print(`${styled('green', 'the same')}  ${what}`);
};
