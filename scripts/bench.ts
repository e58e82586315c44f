/**
 * `npm run bench`: what a durable create and a GET cost, as shares of a bare Fastify server that is
 * driven in turns with them: figures of different runs on one machine cannot be compared. Progress
 * goes to stderr. Exit code 1 when any response was not 2xx, 2 for arguments that cannot be used.
 */
import { BadArguments, HELP, type Options, optionsOf } from './bench/options.ts';
import { type Findings, writeFindings } from './bench/page.ts';

const report = (line: string): void => void process.stderr.write(`${line}\n`);

type Found = Findings & { line?: string; bad: number };

const run = async ({ mode, seconds, sizes }: Options): Promise<Found> => {
  switch (mode) {
    case 'service':
      return (await import('./bench/service.ts')).benchService(seconds, report);
    case 'scale':
      return (await import('./bench/scale.ts')).benchScale(seconds, sizes, report);
    case 'peers':
      return (await import('./bench/peers.ts')).benchPeers(seconds, report);
    case 'webhooks':
      return (await import('./bench/webhooks.ts')).benchWebhooks(seconds, report);
    case 'traces':
      return (await import('./bench/traces.ts')).benchTraces(seconds, report);
    case 'eventstoredb':
      return (await import('./bench/event-store.ts')).benchEventStore(seconds, report);
  }
};

const main = async (): Promise<number> => {
  const options = optionsOf(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(HELP);
    return 0;
  }
  const found = await run(options);
  if (found.line !== undefined) process.stdout.write(`${found.line}\n\n`);
  process.stdout.write(`${found.text}\n`);
  if (options.write) writeFindings(found);
  if (found.bad > 0) report(`${found.bad} responses were not 2xx`);
  return found.bad > 0 ? 1 : 0;
};

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof BadArguments)) throw error;
  report(`bench: ${error.message}`);
  process.exitCode = 2;
}
