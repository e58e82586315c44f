/** `payments erase`: the names, addresses and free texts of a payment or of a person, for good (docs/privacy.md). */
import { type Command, Option } from 'commander';
import type { ErasureBody, PeopleFound } from '../personal-data/erasure/contract.ts';
import { reapplyErasures } from '../personal-data/erasure/ledger.ts';
import { erasure } from '../shared/payment/events.ts';
import { type Client, jsonOf, openClient } from './client.ts';
import { failedAs, withKeys, withLog } from './keys.ts';
import { formatted, type Given } from './options.ts';
import { CommandFailed, countOf, note, print, printJson } from './output.ts';

type Options = Given<'reason' | 'ticket' | 'email' | 'reapply', 'hold' | 'release'>;

const wordOf = ({ erasedAt, requestedBy, expiresAt, heldBy }: ErasureBody): string => {
  if (erasedAt !== undefined) return `erased ${erasedAt}`;
  if (requestedBy !== undefined)
    return `requested by ${requestedBy}: a second person has to request the same before ${expiresAt}`;
  return heldBy === undefined ? 'not held' : `held: ${heldBy}`;
};

const send = async (client: Client, paymentId: string, options: Options): Promise<ErasureBody> => {
  const { reason, ticket, hold, release } = options;
  const path = `/ops/v1/payments/${encodeURIComponent(paymentId)}/erase`;
  if (release) return jsonOf(client.send('DELETE', `${path}/hold`));
  if (ticket === undefined || (reason === undefined && !hold))
    throw new CommandFailed('--reason and --ticket are required, with --hold --ticket alone', 2);
  if (hold) return jsonOf(client.send('PUT', `${path}/hold`, { ticket }));
  return jsonOf(client.post(path, { reason, ticket }));
};

async function* paymentsOf(client: Client, email: string): AsyncGenerator<string> {
  let after: string | undefined;
  do {
    const page = await jsonOf<PeopleFound>(client.post('/ops/v1/people/search', { email, after }));
    yield* page.payments;
    after = page.next;
  } while (after !== undefined);
}

const reapply = async (file: string, format: Options['format']): Promise<void> => {
  process.umask(0o077);
  const erased = await withLog(undefined, 'reapply', (store) =>
    withKeys({}, (keys) => reapplyErasures(file, store, keys)),
  ).catch(failedAs('not every erasure is carried out; run it again'));
  if (format === 'json') return printJson({ erased });
  print(`${countOf(erased)} erasures that the log did not have are carried out again`);
};

const erase = async (paymentId: string | undefined, options: Options): Promise<void> => {
  const { email, format, reapply: file } = options;
  if (file !== undefined) return reapply(file, format);
  if ((paymentId === undefined) === (email === undefined))
    throw new CommandFailed('name a payment, or a person with --email', 2);
  const client = await openClient({ scope: 'ops:erase' });
  const ids = paymentId === undefined ? paymentsOf(client, email ?? '') : [paymentId];
  let refused = 0;
  for await (const id of ids)
    try {
      const body = await send(client, id, options);
      if (format === 'json') printJson(body);
      else print(`${id}  ${wordOf(body)}`);
    } catch (error) {
      if (paymentId !== undefined || !(error instanceof CommandFailed)) throw error;
      refused += 1;
      note(`${id}  ${error.message}`);
    }
  if (refused > 0) throw new CommandFailed(`${refused} payments of the person are not erased`);
};

const REAPPLIES = 'carries out ERASURE_LEDGER again, after a restore of an older log';
const ALONE = ['email', 'hold', 'release', 'reason', 'ticket'];

export const eraseCommand = (): Command =>
  formatted(
    'erase',
    'payments erase pay_01J… --reason CONSUMER_REQUEST --ticket DPO-17',
    'payments erase --email jane@example.com --reason CONSUMER_REQUEST --ticket DPO-17',
    'payments erase pay_01J… --hold --ticket CASE-4711',
    'payments erase --reapply /ledger/erasures',
  )
    .description(
      'Erases the names, addresses and free texts of a payment for good; its money stays. The first person requests it, a second one erases by the same command within 24 hours.',
    )
    .argument('[paymentId]', 'the payment')
    .option('--email <address>', 'all payments of the person with this address')
    .addOption(new Option('--reason <reason>', 'recorded').choices(erasure.reason.options))
    .option('--ticket <ticket>', 'where the request is kept; recorded')
    .addOption(new Option('--hold', 'nothing is erased until --release').conflicts('email'))
    .addOption(new Option('--release', 'ends a hold').conflicts(['email', 'hold']))
    .addOption(new Option('--reapply <file>', REAPPLIES).conflicts(ALONE))
    .action(erase);
