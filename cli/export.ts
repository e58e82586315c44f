/** `payments export`: events as they are stored, one a line, and a manifest next to them. */
import type { Command } from 'commander';
import { isMoment } from '../shared/http/fields.ts';
import { auditClient, pathOf } from './audit.ts';
import { failOnBreaks, headText } from './breaks.ts';
import { orFail } from './client.ts';
import { manifestFileOf } from './export-file.ts';
import {
  dataOption,
  formatOption,
  type Given,
  timeOrPosition,
  timeValue,
  verb,
} from './options.ts';
import { count, failOnMisfit, note, print, printJson } from './output.ts';
import { refuseExisting, writeExport } from './write-export.ts';

type Options = Given<'from' | 'to' | 'merchant' | 'data', 'force'> & { out: string };

const routeOf = (payment: string | undefined, { from, to: toTime }: Options): string => {
  const since = from !== undefined && isMoment(from) ? { fromTime: from } : { from };
  return pathOf('/audit/v1/export', { payment, ...since, toTime });
};

const NOT_SIGNED =
  'the manifest is not signed, so a later change of it cannot be seen: what exported it has no sealing key';

const exportEvents = async (paymentId: string | undefined, options: Options, command: Command) => {
  const { from, to, out, data } = options;
  if (paymentId !== undefined && (from ?? to) !== undefined)
    command.error('error: --from and --to are for the whole log; leave out the payment');
  refuseExisting(out, options.force === true);
  const client = await auditClient(options.merchant, data);
  const { body, headers } = await orFail(await client.get(routeOf(paymentId, options)));
  const lines = body as unknown as AsyncIterable<Uint8Array>;
  const { manifest, breaks } = await writeExport({ body: lines, headers }, out);
  // An export without a signature proves less, and is better than none.
  if (manifest.signature === undefined && data === undefined) note(NOT_SIGNED);
  if (options.format === 'json') printJson(manifest);
  else {
    print(`${count(manifest.count, 'event')}, ${headText(manifest.head)}`);
    note(`Keep ${manifestFileOf(out)} elsewhere too. Next: payments verify --file ${out}`);
  }
  failOnBreaks(`the log that was exported to ${out}`, breaks);
  failOnMisfit(client);
};

export const exportCommand = (): Command =>
  verb('export', 'payments export --out march.jsonl --from 2026-03-01T00:00:00Z')
    .description('Writes events as JSON lines, and a manifest to verify them with.')
    .argument('[paymentId]', 'one payment; left out: the whole log')
    .requiredOption('--out <file>', 'the file to write; its manifest is written next to it')
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
