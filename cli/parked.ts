/** `payments parked`: payments that the projector has parked at a poison event. */
import { Command } from 'commander';
import type { ParkedList, ParkedRetry } from '../projector/contract.ts';
import { postOps, readOps } from './client.ts';
import { type Format, formatOption } from './options.ts';
import { CommandFailed, columns, note, print, printJson } from './output.ts';

type Options = { format: Format };

const list = async ({ format }: Options): Promise<void> => {
  const { parked } = await readOps<ParkedList>('/ops/v1/parked');
  if (format === 'json') return printJson(parked);
  if (parked.length === 0) return note('No payment is parked.');
  const rows = parked.map((one) => [one.paymentId, String(one.revision), one.since, one.reason]);
  print(...columns([['PAYMENT', 'REVISION', 'SINCE', 'REASON'], ...rows]));
  note('Once the cause is mended: payments parked retry <paymentId>');
};

const retry = async (paymentId: string, { format }: Options): Promise<void> => {
  const path = `/ops/v1/parked/${encodeURIComponent(paymentId)}/retry`;
  const retried = await postOps<ParkedRetry>(path);
  if (format === 'json') printJson(retried);
  else if (retried.whole) print(`${paymentId}  no longer parked, its read models are whole`);
  if (retried.whole) return;
  const { at = '?', reason = 'unknown' } = retried;
  throw new CommandFailed(`${paymentId} is still parked at revision ${at}: ${reason}`);
};

export const parkedCommand = (): Command =>
  new Command('parked')
    .description(
      'Lists and retries payments parked at an event that cannot be applied; GET serves them from their events.',
    )
    .addHelpText('after', '\nExample:\n  payments parked list')
    .addCommand(
      new Command('list')
        .description('Lists the parked payments, the oldest first.')
        .addHelpText('after', '\nExample:\n  payments parked list --format json')
        .addOption(formatOption())
        .action(list),
    )
    .addCommand(
      new Command('retry')
        .description('Applies the events of a parked payment again, once the cause is mended.')
        .addHelpText('after', '\nExample:\n  payments parked retry pay_01J…')
        .argument('<paymentId>', 'the payment, see payments parked list')
        .addOption(formatOption())
        .action(retry),
    );
