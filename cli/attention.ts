/** `payments attention`: everything that needs a person, in one list (gaps §25). */
import { type Command, Option } from 'commander';
import {
  ATTENTION_REASONS,
  type AttentionAcknowledgement,
  type AttentionItem,
  type AttentionList,
} from '../command-api/back-office/attention/contract.ts';
import { auditPath } from './audit.ts';
import { jsonOf, openClient, readOps } from './client.ts';
import { formatted, type Given } from './options.ts';
import { CommandFailed, columns, count, print, printJson, printList } from './output.ts';

const LIST = '/ops/v1/attention';
const LIMIT = '1000';

export const readAttention = async (reason?: string) => {
  const items: AttentionItem[] = [];
  let cursor: string | undefined;
  do {
    const page = auditPath(LIST, { limit: LIMIT, reason, cursor });
    const { items: more, next } = await readOps<AttentionList>(page);
    items.push(...more);
    cursor = next;
  } while (cursor !== undefined);
  return items;
};

export const attentionLines = (items: readonly AttentionItem[]): string[] =>
  columns([
    ['SINCE', 'REASON', 'WHAT', 'NEXT', 'ID'],
    ...items.map(({ since, reason, what, next, id }) => [since, reason, what, next, id]),
  ]);

export const needAPerson = ({ length }: readonly AttentionItem[]): string =>
  `${count(length, 'item')} ${length === 1 ? 'needs' : 'need'} a person`;

type Options = Given<'reason' | 'acknowledge' | 'note'>;

const acknowledge = async (id: string, { format, note: why }: Options): Promise<void> => {
  if (why === undefined) throw new CommandFailed('--acknowledge needs --note', 2);
  const client = await openClient({ scope: 'ops:admin' });
  const path = `${LIST}/${encodeURIComponent(id)}/acknowledge`;
  const stored = await jsonOf<AttentionAcknowledgement>(client.post(path, { note: why }));
  if (format === 'json') return printJson(stored);
  print(`${id}  ${stored.reason} acknowledged by ${stored.actor}`);
};

const attention = async (options: Options): Promise<void> => {
  const { format, reason, acknowledge: id } = options;
  if (id !== undefined) return acknowledge(id, options);
  const items = await readAttention(reason);
  printList(format, items, attentionLines, 'Nothing needs a person.');
  if (items.length > 0) throw new CommandFailed(needAPerson(items), 3);
};

export const attentionCommand = (): Command =>
  formatted(
    'attention',
    'payments attention --reason UNRESOLVED',
    'payments attention --acknowledge att_01J… --note "TICKET-17"',
  )
    .description(
      'Lists everything that needs a person, the oldest first, each with a command to begin with. Exits with 3 if the list is not empty.',
    )
    .addOption(new Option('--reason <reason>', 'of this reason alone').choices(ATTENTION_REASONS))
    .addOption(
      new Option(
        '--acknowledge <id>',
        'takes a LOG_BROKEN or LEDGER_DIFFERS off the list; recorded',
      ).conflicts('reason'),
    )
    .option('--note <text>', 'with --acknowledge: what was found out; recorded')
    .action(attention);
