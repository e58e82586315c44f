/** `payments find`: searches payments whose id is not known. */
import type { Command } from 'commander';
import type { AuditFound, AuditSearchPage } from '../audit/contract.ts';
import { auditClient, auditPath } from './audit.ts';
import { jsonOf } from './client.ts';
import { formatted, type Given, timeValue } from './options.ts';
import { moneyText, note, print, printJson, styled, table } from './output.ts';

/** Texts for the query, by the names that they have there. */
type Options = Given<string>;

const foundTable = table<AuditFound>({
  CREATED: ({ createdAt }) => `${createdAt.slice(0, 10)} ${createdAt.slice(11, 19)}`,
  PAYMENT: ({ paymentId }) => paymentId,
  STATUS: ({ status }) => status,
  AMOUNT: ({ amount, currency }) => moneyText(amount, currency),
  CARD: ({ last4 }) => last4,
  REFERENCE: ({ merchantReference = '' }) => merchantReference,
  MERCHANT: ({ merchantId }) => merchantId,
});

const find = async (q: string | undefined, { format, ...parameters }: Options): Promise<void> => {
  const client = await auditClient();
  const page = await jsonOf<AuditSearchPage>(
    client.get(auditPath('/audit/v1/payments', { q, ...parameters })),
  );
  if (format === 'json') return printJson(page);
  if (page.payments.length === 0)
    return note(
      page.next === null
        ? 'No payment matches. Next: payments find, without filters'
        : `No payment created after ${page.searchedTo} matches: go on with --cursor ${page.next}`,
    );
  const [header = '', ...rows] = foundTable(page.payments);
  print(styled('bold', header), ...rows);
  if (page.next !== null) note(`There are more: add --cursor ${page.next}`);
};

export const findCommand = (): Command =>
  formatted('find', 'payments find 4242 --status REFUNDED --from 2026-03-01T00:00:00Z')
    .description('Finds payments by id, reference, last four digits, status, amount and time.')
    .argument('[q]', 'a paymentId, a merchantReference or the last four digits of a card')
    .option('--status <status>', 'such as CAPTURED')
    .option('--from <time>', 'created at this time or later (RFC 3339)', timeValue)
    .option('--to <time>', 'created before this time', timeValue)
    .option('--min-amount <minor>', 'in minor units: 1500 is 15.00 USD')
    .option('--max-amount <minor>', 'in minor units')
    .option('--merchant <id>', 'only this merchant')
    .option('--limit <n>', 'how many payments at most, up to 200')
    .option('--cursor <cursor>', 'continue after an earlier page')
    .action(find);
