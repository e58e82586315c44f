import { z } from 'zod';
import { CARD_BRANDS } from '../../payment/card.ts';
import { parseText } from '../json.ts';
import { type Report, readJson, readSecret, settingsPath } from './files.ts';
import { isLiveKey, settings } from './table.ts';

const wholeNumber = (min: number, max: number) => {
  const error = `must be a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error }).optional();
};
const ACCOUNT = { error: 'must be the id of an account of Stripe (acct_)' };
const PATH = { error: 'must be the path of a file' };
const fileName = z.string(PATH).min(1, PATH).max(4096, PATH).optional();
const rate = wholeNumber(0, 1_000_000);
const BRANDS = { error: `must be a list of ${CARD_BRANDS.join(', ')}, and hold at least one` };

const merchantSettings = z.strictObject({
  maxAmount: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  acceptedBrands: z.array(z.enum(CARD_BRANDS, BRANDS), BRANDS).min(1, BRANDS).optional(),
  merchantReference: z.enum(['allow', 'unique'], { error: 'must be allow or unique' }).optional(),
  rateLimitPerSecond: rate,
  rateLimitBurst: rate,
  stripeAccount: z
    .string(ACCOUNT)
    .regex(/^acct_[A-Za-z0-9]{1,64}$/, ACCOUNT)
    .optional(),
  stripeSecretKeyFile: fileName,
  stripeWebhookSecretFile: fileName,
});
export type MerchantSettings = z.infer<typeof merchantSettings>;
export type Merchants = ReadonlyMap<string, MerchantSettings>;
const merchantsFile = z.record(z.string().min(1).max(255), merchantSettings);

const problemOf = ({ code, path, message, ...issue }: z.core.$ZodIssue): string => {
  const [merchant, field] = path.map(String);
  if (merchant === undefined) return 'must hold a JSON object with merchant ids as keys';
  if (code === 'unrecognized_keys' && 'keys' in issue)
    return `${merchant} has unknown fields: ${issue.keys.join(', ')}`;
  if (field === undefined) return `${merchant} must be an object of settings`;
  return `${merchant}.${field} ${message}`;
};

/** Of a name that stands twice the parser silently takes the later. */
const repeatedIn = (json: string): string[] => {
  const parsed = parseText(json);
  const repeated = parsed.ok ? parsed.repeated : undefined;
  return repeated === undefined ? [] : [`${repeated.join(', ') || 'a field'} stands there twice`];
};

const nameProblems = (value: unknown): string[] =>
  Object.keys(Object(value)).flatMap((id) => {
    if (id === '') return 'has an entry without the id of a merchant';
    if (id === '__proto__') return '__proto__ can be no name there';
    if (id === '*') return '* is no merchant: in a token it stands for all of them';
    return id === id.trim() ? [] : `${JSON.stringify(id)} has spaces around the id of the merchant`;
  });

const readEntries = (file: string, report: Report): [id: string, own: MerchantSettings][] => {
  const read = readJson(file, report);
  if (read === undefined) return [];
  const problems = [...repeatedIn(read.text), ...nameProblems(read.value)];
  const parsed = merchantsFile.safeParse(read.value);
  if (problems.length === 0 && parsed.success)
    return Object.entries(parsed.data).map(([id, own]) => [id.normalize('NFC'), own]);
  const wrong = problems.length > 0 ? problems : new Set(parsed.error?.issues.map(problemOf));
  for (const problem of wrong) report(problem);
  return [];
};

export const readMerchants = (file: string | undefined, report: Report): Merchants => {
  const entries = file === undefined ? [] : readEntries(settingsPath(file), report);
  for (const [at, [id, own]] of entries.entries()) {
    if (own.rateLimitBurst === 0 && (own.rateLimitPerSecond ?? 0) > 0)
      report(`${id}.rateLimitBurst must be at least 1 when rateLimitPerSecond is set`);
    // One merchant: a name counts in one form (gaps §10).
    if (entries.findIndex(([other]) => other === id) < at)
      report(`${id} stands there twice, composed and decomposed`);
  }
  return new Map(entries);
};

/** A merchant's own account. Holds secrets: never log it. */
export type MerchantAccount = {
  secretKey: string;
  /** A connected account, with the installation's key alone. */
  account: string | undefined;
  webhookSecrets: readonly string[];
};

const readOwn = <T>(
  file: string | undefined,
  schema: z.ZodType<T | undefined>,
  wording: string,
  report: Report,
): T | undefined => {
  const content = file === undefined ? undefined : readSecret(settingsPath(file), report);
  if (content === undefined) return undefined;
  return schema.safeParse(content).data ?? report(wording);
};

const readAccount = (
  own: MerchantSettings,
  installationKey: string,
  reportFor: (field: string) => Report,
): MerchantAccount => {
  const report = reportFor('.stripeSecretKeyFile');
  const ownKey = readOwn(
    own.stripeSecretKeyFile,
    settings.STRIPE_SECRET_KEY.schema,
    'must hold a secret or restricted key of Stripe',
    report,
  );
  // A test key among live ones gives goods away, a live one among test keys sells them.
  if (ownKey !== undefined && isLiveKey(ownKey) !== isLiveKey(installationKey))
    report('must hold a key of the mode of STRIPE_SECRET_KEY, test or live');
  const webhookSecrets = readOwn(
    own.stripeWebhookSecretFile,
    settings.STRIPE_WEBHOOK_SECRET.schema,
    'must hold a signing secret of Stripe (whsec_), or two, by a comma',
    reportFor('.stripeWebhookSecretFile'),
  );
  return {
    secretKey: ownKey ?? installationKey,
    account: own.stripeAccount,
    webhookSecrets: webhookSecrets ?? [],
  };
};

export const readMerchantAccounts = (
  merchants: Merchants,
  installationKey: string,
  report: Report,
): ReadonlyMap<string, MerchantAccount> => {
  const accounts = new Map<string, MerchantAccount>();
  for (const [id, own] of merchants) {
    const reportFor =
      (field: string): Report =>
      (problem) =>
        report(`${id}${field} ${problem}`);
    const { stripeAccount, stripeSecretKeyFile, stripeWebhookSecretFile } = own;
    if (stripeAccount !== undefined && stripeSecretKeyFile !== undefined)
      report(`${id} must not have both stripeAccount and stripeSecretKeyFile`);
    if (stripeWebhookSecretFile !== undefined && stripeSecretKeyFile === undefined)
      report(`${id}.stripeWebhookSecretFile must stand beside stripeSecretKeyFile`);
    if (stripeAccount !== undefined || stripeSecretKeyFile !== undefined)
      accounts.set(id, readAccount(own, installationKey, reportFor));
  }
  return accounts;
};
