/** `payments parked`: payments that the projector has parked at a poison event. */
import type { Command } from 'commander';
import type { ParkedList, ParkedRetry } from '../projector/contract.ts';
import { postOps, readOps } from './client.ts';
import { type Format, formatted, verb } from './options.ts';
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
  verb('parked', 'payments parked list')
    .description(
      'Lists and retries payments parked at an event that cannot be applied; GET serves them from their events.',
    )
    .addCommand(
      formatted('list', 'payments parked list --format json')
        .description('Lists the parked payments, the oldest first.')
        .action(list),
    )
    .addCommand(
      formatted('retry', 'payments parked retry pay_01J…')
        .description('Applies the events of a parked payment again, once the cause is mended.')
        .argument('<paymentId>', 'the payment, see payments parked list')
        .action(retry),
    );
