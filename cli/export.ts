/** `payments export`: events as they are stored, one a line, and a manifest beside them. */
import type { Command } from 'commander';
import type { Manifest } from '../shared/event-store/manifest.ts';
import { isMoment } from '../shared/http/fields.ts';
import { auditClient, pathOf, paymentPath } from './audit.ts';
import { failOnBreaks, headText } from './breaks.ts';
import { type Client, jsonOf, orFail } from './client.ts';
import { manifestFileOf } from './export-file.ts';
import {
  dataOption,
  formatOption,
  type Given,
  timeOrPosition,
  timeValue,
  verb,
} from './options.ts';
import { CommandFailed, count, note, print, printJson } from './output.ts';
import { refuseExisting, writeExport } from './write-export.ts';

type Options = Given<'from' | 'to' | 'merchant' | 'data', 'force'> & { out: string };

const routeOf = (paymentId: string | undefined, { from, to }: Options): string => {
  if (paymentId !== undefined) return paymentPath(paymentId, 'events');
  const fromTime = from !== undefined && isMoment(from) ? from : undefined;
  return pathOf('/audit/v1/events', {
    from: fromTime === undefined ? from : undefined,
    fromTime,
    toTime: to,
  });
};

const NOT_SIGNED = 'the manifest is not signed, so a later change of it cannot be seen';

/** An export without a signature proves less, and is better than none. */
const signBy =
  (client: Client) =>
  async (manifest: Manifest): Promise<Manifest['signature']> => {
    try {
      return await jsonOf(client.post('/ops/v1/log/manifest', manifest));
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      note(`${NOT_SIGNED}: ${error.message}`);
      return undefined;
    }
  };

const exportEvents = async (paymentId: string | undefined, options: Options, command: Command) => {
  const { from, to, out } = options;
  if (paymentId !== undefined && (from ?? to) !== undefined)
    command.error('error: --from and --to are for the whole log; leave out the payment');
  refuseExisting(out, options.force === true);
  const client = await auditClient(options.merchant, options.data);
  const response = await orFail(
    await client.get(routeOf(paymentId, options), { accept: 'application/x-ndjson' }),
  );
  const range = {
    ...(paymentId !== undefined && { paymentId }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  };
  const body = response.body as unknown as AsyncIterable<Uint8Array>;
  const { manifest, breaks } = await writeExport(
    { body, headers: response.headers },
    out,
    range,
    options.data === undefined ? signBy(client) : undefined,
  );
  if (options.format === 'json') printJson(manifest);
  else {
    print(`${count(manifest.count, 'event')}, ${headText(manifest.head)}`);
    note(`Keep ${manifestFileOf(out)} elsewhere too. Next: payments verify --file ${out}`);
  }
  failOnBreaks(`the log that was exported to ${out}`, breaks);
};

export const exportCommand = (): Command =>
  verb('export', 'payments export --out march.jsonl --from 2026-03-01T00:00:00Z')
    .description('Writes events as JSON lines, and a manifest to verify them with.')
    .argument('[paymentId]', 'one payment; left out: the whole log')
    .requiredOption('--out <file>', 'the file to write; its manifest is written beside it')
    .option(
      '--from <from>',
      'a time (inclusive), or a position (everything after it)',
      timeOrPosition,
    )
    .option('--to <time>', 'a time (exclusive)', timeValue)
    .option('--force', 'replace the file and its manifest where they are there already')
    .addOption(dataOption())
    .option('--merchant <id>', 'only this merchant')
    .addOption(formatOption())
    .action(exportEvents);
