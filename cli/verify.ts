/** `payments verify`: whether the log was changed; if so, the first break and exit code 3. */
import { type Command, Option } from 'commander';
import { findingOf, sealBefore } from '../audit/breaks.ts';
import type { AuditVerification } from '../audit/contract.ts';
import type { ReadModelsComparison } from '../projector/contract.ts';
import { auditClient, auditPath, paymentPath } from './audit.ts';
import {
  acknowledgeBreaks,
  headText,
  othersOf,
  placeText,
  printAcknowledged,
  printBreaks,
} from './breaks.ts';
import { type Client, jsonOf, postToFollowing } from './client.ts';
import { readManifest, requireProof, verifyFile } from './export-file.ts';
import { dataOption, type Format, formatted, type Given, keyOption } from './options.ts';
import {
  CommandFailed,
  columns,
  count,
  countOf,
  failOnMisfit,
  note,
  print,
  printJson,
  styled,
} from './output.ts';
import { publicKeyIn } from './settings.ts';
import { AS_STREAM, streamResult } from './streams.ts';

type Options = Given<
  'acknowledge' | 'note' | 'file' | 'manifest' | 'key' | 'merchant' | 'data',
  'all' | 'readModels' | 'keys'
>;

/** Of a log by the service, or of an export; each leaves out what the other has. */
type Verification = Partial<AuditVerification> &
  Pick<AuditVerification, 'events' | 'head'> &
  Partial<Pick<Awaited<ReturnType<typeof verifyFile>>, 'completeness' | 'signed'>>;

const PROVES: Record<string, string> = {
  log: 'one chain over the whole log',
  sealed: 'one chain over the log up to the last seal',
  stream: 'a chain within each stream',
};

const NO_KEY =
  'the seals were not checked against a key: payments verify --file <file> --key <file>';

const UNCHECKED =
  'manifest  signed by a key that was not checked: payments verify --file <file> --key <file>';

const sealsLines = (sealed: NonNullable<AuditVerification['sealed']>): string[] => {
  const { seals, position, keyId, eventsAfter, trustedKeyId } = sealed;
  if (seals === 0) return [`seals  none: ${eventsAfter} events are as safe as the chain alone`];
  const fit = `seals  ${seals} fit, the last up to #${position} by key ${keyId}; ${eventsAfter} events after it`;
  return trustedKeyId === undefined ? [fit, `seals  ${NO_KEY}`] : [fit];
};

const missingIn = ({ missingPayments: missing = [] }: Verification): string =>
  missing.length === 0
    ? ''
    : `; the read models know payments that the log does not hold: ${missing.join(', ')}`;

/** Printed first: the one word, then how far it reaches (gaps §25). */
const WORDS = {
  INTACT: styled('green', 'intact'),
  BROKEN: styled('red', 'BROKEN'),
  INCOMPLETE: styled('yellow', 'INCOMPLETE'),
};

const notChecked = ({ breaks }: Verification): string => {
  const { unreadable = 0, named = [] } = breaks ?? {};
  const seals = named.map(sealBefore).filter((position) => position !== undefined);
  const parts = [
    ...(unreadable > 0 ? [`${count(unreadable, 'event')} cannot be read`] : []),
    ...seals.map((position) => `no seal after #${position}`),
  ];
  return parts.length === 0 ? '' : `: ${parts.join(', ')}`;
};

const firstLine = (word: keyof typeof WORDS, whole: Verification): string => {
  const erased = whole.erased === undefined ? '' : `, ${count(whole.erased, 'payment')} erased`;
  return `${WORDS[word]}  ${count(whole.events, 'event')}, ${headText(whole.head)}${erased}${notChecked(whole)}`;
};

/** Throws CommandFailed with exit code 3 where a key is not as the log says. */
const showKeys = ({ named, ...found }: NonNullable<AuditVerification['keys']>, format: Format) => {
  const said = Object.entries(found).map(([finding, boxes]) => `${finding} ${countOf(boxes)}`);
  if (format !== 'json') print(`boxes  ${said.join(', ')}`, ...named.map(placeText));
  if (named.length > 0)
    throw new CommandFailed(`keys of personal data are not as the log says (docs/privacy.md)`, 3);
};

/** Throws CommandFailed with exit code 3 where there is a break. */
const show = (verification: Verification, { format, key }: Options, misfit?: string): void => {
  const { broken, breaks, keptHead: kept, guarantee, signed, sealed } = verification;
  const found = verification.finding ?? findingOf(breaks ?? { count: 0 });
  const finding = misfit === undefined ? found : 'BROKEN';
  const isPretty = format !== 'json';
  const ok = finding === 'INTACT' && verification.ok;
  if (!isPretty) printJson({ ...verification, ok, finding });
  if (broken !== undefined) {
    if (isPretty) print(firstLine(finding === 'INCOMPLETE' ? finding : 'BROKEN', verification));
    if (isPretty && breaks !== undefined) printBreaks(breaks);
    throw new CommandFailed(
      `verification failed at ${placeText(broken)}${othersOf(breaks ?? { count: 1 })}${missingIn(verification)}; ${verification.completeness !== undefined ? 'compare it with another copy, or with the log: payments verify --all' : 'keep this copy and compare it with an export: payments export'}`,
      3,
    );
  }
  if (kept?.signature === 'NOT_GOOD') throw new CommandFailed(kept.notComparable ?? '', 3);
  if (finding === 'NOT_COMPARABLE')
    throw new CommandFailed(
      `not comparable: ${kept?.notComparable}. The verified events have no break, and nothing is said of an end that was cut off; name a manifest of this log, and of the same merchant`,
    );
  if (!isPretty) return;
  const proves = guarantee === undefined ? '' : `  (${PROVES[guarantee]})`;
  print(`${firstLine(finding, verification)}${proves}`);
  if (kept?.found === true)
    print(
      `kept head  #${kept.position} found: the log holds it as exported${kept.signature === 'NONE' ? '; the manifest is not signed' : ''}`,
    );
  if (signed === false) print('manifest  not signed: an edit of it cannot be seen');
  if (signed && key === undefined && !sealed?.seals) print(UNCHECKED);
  if (sealed !== undefined) print(...sealsLines(sealed));
  if (breaks !== undefined) printAcknowledged(breaks);
};

/** The whole of it: the service checks its signature, and compares each field of its head. */
const manifestIn = (file: string): string => {
  const manifest = readManifest(file);
  if (manifest.head === null)
    throw new CommandFailed(`${file} is of an empty export: it has no head to compare with`);
  return Buffer.from(JSON.stringify(manifest)).toString('base64url');
};

const verifyLog = async ({ get }: Client, { manifest, keys }: Options) => {
  const kept = manifest === undefined ? undefined : manifestIn(manifest);
  const path = auditPath('/audit/v1/verify', { manifest: kept, keys });
  return streamResult<AuditVerification>(get(path, AS_STREAM), {
    what: 'verify',
    lost: 'the connection was lost before the result; start the verification again',
    progressOf: (text) => {
      const { verified: done, of: total, estimated } = JSON.parse(text);
      return { done, total, estimated };
    },
  });
};

/** Throws CommandFailed, with exit code 3 where the document of a payment differs from the log. */
const compareReadModels = async (format: Format): Promise<void> => {
  const response = postToFollowing('/ops/v1/projections/compare', AS_STREAM);
  const found = await streamResult<ReadModelsComparison>(response, {
    what: 'compare',
    lost: 'the connection was lost before the result; start the comparison again',
    failed: (data) => `the comparison failed: ${JSON.parse(data).reason}; start it again`,
  });
  const { documents, payments, differences, kinds, named } = found;
  if (format === 'json') printJson(found);
  else if (differences > 0)
    print(...columns(named.map(({ paymentId, kind, detail }) => [paymentId, kind, detail])));
  if (differences > 0) {
    const each = Object.entries(kinds).map(([kind, n]) => `${countOf(n)} ${kind}`);
    throw new CommandFailed(
      `${count(differences, 'difference')} between read models and log (${each.join(', ')}); is the log as it was written? payments verify --all. If it is: ${kinds.parked === undefined ? '' : 'payments parked list, and '}payments projections rebuild`,
      3,
    );
  }
  if (format === 'json') return;
  const what = `${countOf(documents)} documents, ${countOf(payments)} payments in the log`;
  print(`${styled('green', 'the same')}  ${what}`);
};

/** Ends the verb, exit code 2, at an option that would have no effect. */
const refusePassedOver = (
  paymentId: string | undefined,
  { file, all, readModels, key, manifest, acknowledge, note: why }: Options,
  command: Command,
): void => {
  if ((acknowledge === undefined) !== (why === undefined))
    command.error('error: --acknowledge <stream>@<revision> and --note <text> go together');
  const targets = [paymentId, file, all, readModels].filter((one) => one !== undefined).length;
  if (targets !== 1)
    command.error('error: name exactly one of: a payment, --all, --file <file>, --read-models');
  if (key !== undefined && file === undefined)
    command.error('error: --key goes with --file: a service has its own key');
  if (manifest !== undefined && file === undefined && all === undefined)
    command.error(
      'error: --manifest goes with --all, which looks for its head in the log, or with --file',
    );
};

const verifyExport = async (file: string, { manifest, key }: Options) => {
  const verification = await verifyFile(file, manifest, publicKeyIn(key));
  const { ok, sealed, signed } = verification;
  if (ok) requireProof(file, key, signed || (sealed?.seals ?? 0) > 0);
  return verification;
};

const verify = async (paymentId: string | undefined, given: Options, command: Command) => {
  const isOfLog = (given.data ?? given.acknowledge) !== undefined && paymentId === undefined;
  const options: Options = isOfLog || given.keys ? { ...given, all: true } : given;
  refusePassedOver(paymentId, options, command);
  if (options.readModels) return compareReadModels(options.format);
  const { acknowledge, note: why = '', file } = options;
  if (file !== undefined) return show(await verifyExport(file, options), options);
  const client = await auditClient(options.merchant, options.data);
  if (acknowledge !== undefined)
    await acknowledgeBreaks(await verifyLog(client, options), acknowledge, why);
  const verification = options.all
    ? verifyLog(client, options)
    : jsonOf<AuditVerification>(client.get(paymentPath(paymentId ?? '', 'verify')));
  const verified = await verification;
  show(verified, options, client.misfit);
  if (verified.keys !== undefined) showKeys(verified.keys, options.format);
  if (options.all && options.manifest === undefined && options.format === 'pretty') {
    note(
      'The chain cannot show a cut end. Compare with a kept head: payments verify --all --manifest <file>',
    );
  }
  failOnMisfit(client);
};

export const verifyCommand = (): Command =>
  formatted(
    'verify',
    'payments verify --all',
    'payments verify --file march.jsonl --key sealing-key.public.pem',
    'payments verify --keys',
    'payments verify --read-models',
    'payments verify --data ./data',
    'payments verify --acknowledge payment-other@0 --note "TICKET-17: written by a test client"',
  )
    .description('Verifies one payment, the whole log, the read models, or an export.')
    .argument('[paymentId]', 'one payment')
    .option('--all', 'every event of the log')
    .option('--keys', 'with --all: whether each box of personal data opens, or was erased')
    .option('--read-models', 'every document that GET and lists are served from, against the log')
    .option('--file <file>', 'an export, with its manifest next to it; no service is needed')
    .option(
      '--manifest <file>',
      'with --all: the log must still hold the head of this manifest; with --file: its manifest',
    )
    .addOption(keyOption())
    .addOption(
      new Option(
        '--acknowledge <break>',
        'record that this break, <stream>@<revision> of --all, may stay, and verify again',
      ).conflicts(['file', 'readModels', 'data', 'merchant', 'manifest']),
    )
    .option('--note <text>', 'with --acknowledge: why it may stay')
    .addOption(dataOption().conflicts(['file', 'readModels']))
    .addOption(
      new Option('--merchant <id>', 'only this merchant').conflicts(['file', 'readModels']),
    )
    .action(verify);
