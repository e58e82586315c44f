/** `payments unresolved` and `payments resolve`: operations whose outcome is not known, or is contradicted, and a person's word for it (gaps §16, ADR-0098). */
import { type Command, Option } from 'commander';
import type {
  ResolutionBody,
  ResolutionRequested,
  UnresolvedList,
} from '../command-api/back-office/by-hand/contract.ts';
import { jsonOf, openClient, readOps } from './client.ts';
import { type Format, formatted, type Given } from './options.ts';
import { moneyText, note, print, printJson, table } from './output.ts';

type Unresolved = UnresolvedList['unresolved'][number];

const UNITS: [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
];

const span = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [name, size] = UNITS.find(([, unit]) => seconds >= unit) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${name}`;
};

const nextOf = ({ nextAttemptAt, attempts, otherProvider }: Unresolved): string => {
  if (otherProvider !== undefined) return `not asked: ${otherProvider}`;
  if (nextAttemptAt !== null) return `in ${span(Date.parse(nextAttemptAt) - Date.now())}`;
  return attempts > 0 ? 'now' : 'by the process that sent it';
};

const unresolvedTable = table<Unresolved>({
  PAYMENT: (one) => one.paymentId,
  MERCHANT: (one) => one.merchantId,
  STATE: (one) => one.state.toLowerCase(),
  OPERATION: (one) => one.operation,
  AMOUNT: (one) => moneyText(one.amountMinor, one.currency),
  AGE: (one) => span(Date.now() - Date.parse(one.since)),
  ATTEMPTS: (one) => String(one.attempts),
  'NEXT ATTEMPT': nextOf,
  ID: (one) => one.operationId,
});

const approvalOf = ({ paymentId, operationId, request }: Unresolved): string[] => {
  if (request === undefined) return [];
  const { outcome, withoutFence, requestedBy, expiresAt } = request;
  const word = outcome.toLowerCase();
  const fence = withoutFence ? ' --without-fence' : '';
  return [
    `${paymentId}: ${requestedBy} requested ${word}; a second person can approve until ${expiresAt}:`,
    `  payments resolve ${paymentId} --outcome ${word} --operation ${operationId}${fence} --evidence "…"`,
  ];
};

const list = async ({ format }: { format: Format }): Promise<void> => {
  const { unresolved, unconfirmed } = await readOps<UnresolvedList>('/ops/v1/unresolved');
  if (format === 'json') return printJson([...unresolved, ...unconfirmed]);
  if (unresolved.length === 0) note('Nothing is unresolved.');
  else print(...unresolvedTable(unresolved));
  note(...unresolved.flatMap(approvalOf));
  if (unconfirmed.length > 0)
    note(
      `Resolved by hand, not yet confirmed by the provider: ${unconfirmed.map(({ paymentId }) => paymentId).join(', ')}`,
    );
  if (unresolved.some(({ otherProvider }) => otherProvider !== undefined))
    note(
      'Some were sent to another provider than the one that is set, and are neither asked about nor fenced. Start with that provider again; or, where it is the same at another address, name it in PROVIDER_SAME_AS; or: payments resolve',
    );
  if (unresolved.length > 0)
    note('Where the provider will never report the outcome: payments resolve --help');
};

export const unresolvedCommand = (): Command =>
  formatted('unresolved', 'payments unresolved --format json')
    .description(
      'Lists operations whose outcome at the provider is not known, or of which the provider says other than what was resolved by hand, the oldest first.',
    )
    .action(list);

type Options = { outcome: 'approved' | 'declined'; evidence: string } & Given<
  'operation',
  'withoutFence'
>;

const resolve = async (paymentId: string, options: Options): Promise<void> => {
  const { outcome, evidence, operation: operationId, withoutFence, format } = options;
  const client = await openClient({ scope: 'ops:resolve' });
  const path = `/ops/v1/payments/${encodeURIComponent(paymentId)}/resolve`;
  const body = { outcome, evidence, operationId, withoutFence };
  const resolved = await jsonOf<ResolutionBody | ResolutionRequested>(client.post(path, body));
  if (format === 'json') return printJson(resolved);
  const { operation, status } = resolved;
  if ('request' in resolved) {
    const { requestedBy, expiresAt } = resolved.request;
    print(`${paymentId}  ${operation} ${outcome}: requested by ${requestedBy}, still ${status}`);
    const flags = `--operation ${resolved.operationId}${withoutFence ? ' --without-fence' : ''}`;
    return note(
      `Nothing is recorded yet: a second person has to approve before ${expiresAt}, with a token of their own in PAYMENTS_TOKEN:`,
      `  payments resolve ${paymentId} --outcome ${outcome} ${flags} --evidence "…"`,
    );
  }
  const { revision, confirmed } = resolved;
  print(`${paymentId}  ${operation} ${outcome}, now ${status} (revision ${revision})`);
  note(
    confirmed
      ? 'The contradiction is ended: the provider is not asked any more'
      : 'The provider is asked again until it says the same: payments unresolved',
  );
};

export const resolveCommand = (): Command =>
  formatted(
    'resolve',
    'payments token --merchant "*" --scope ops:resolve --subject ann@example.com',
    'PAYMENTS_TOKEN=… payments resolve pay_01J… --outcome declined --without-fence --evidence "letter of the provider, case 4711"',
  )
    .description(
      'Resolves an operation whose outcome the provider does not report. The first person requests it, a second one approves it by the same command within 24 hours. The provider is asked first: if it reports a definite outcome, that one is recorded and this command is refused.',
    )
    .argument('<paymentId>', 'the payment, see payments unresolved')
    .addOption(
      new Option('--outcome <outcome>', 'the outcome of the operation')
        .choices(['approved', 'declined'])
        .makeOptionMandatory(),
    )
    .requiredOption(
      '--evidence <text>',
      'how you know the outcome; stored for auditors, must hold no card number',
    )
    .option('--operation <id>', 'the operation id, where several operations are unresolved')
    .option(
      '--without-fence',
      'declined although the provider does not promise never to carry it out',
    )
    .action(resolve);
