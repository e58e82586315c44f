/**
 * The merchants that have an account of Stripe of their own (MERCHANTS_FILE): a connected account that
 * the installation's key acts for, or a secret key in a file of its own.
 */
import { resolve } from 'node:path';
import type { MerchantAccount } from '../config.ts';
import { contentOf } from './files.ts';
import type { MerchantSettings } from './merchants.ts';
import { isLiveKey } from './problems.ts';
import { settings } from './table.ts';

type Read<T> = { value: T } | { problem: string };

/** A secret of a merchant's, by the schema of the setting that it takes the place of. */
const secretOf = <T>(
  file: string,
  folder: string,
  schema: { safeParse(value: unknown): { success: boolean; data?: T | undefined } },
  wording: string,
): Read<T> => {
  const read = contentOf(resolve(folder, file));
  if ('problem' in read) return read;
  const { data } = schema.safeParse(read.value);
  return data === undefined ? { problem: wording } : { value: data };
};

const IS_NO_KEY = 'must hold a secret or restricted key of Stripe';
const IS_NO_SECRET = 'must hold a signing secret of Stripe (whsec_), or two, by a comma';

const combinationProblems = (id: string, own: MerchantSettings): string[] => [
  ...(own.stripeAccount !== undefined && own.stripeSecretKeyFile !== undefined
    ? [`${id} must not have both stripeAccount and stripeSecretKeyFile`]
    : []),
  ...(own.stripeWebhookSecretFile !== undefined && own.stripeSecretKeyFile === undefined
    ? [`${id}.stripeWebhookSecretFile must stand beside stripeSecretKeyFile`]
    : []),
];

/** A test key among live ones would let a shop give goods away, and a live one among test keys sell. */
const modeProblems = (id: string, ownKey: string, installationKey: string): string[] =>
  isLiveKey(ownKey) === isLiveKey(installationKey)
    ? []
    : [`${id}.stripeSecretKeyFile must hold a key of the mode of STRIPE_SECRET_KEY, test or live`];

const accountOf = (
  id: string,
  own: MerchantSettings,
  installationKey: string,
  folder: string,
): { account: MerchantAccount; problems: string[] } => {
  const problems: string[] = [];
  let secretKey = installationKey;
  let webhookSecrets: readonly string[] = [];
  if (own.stripeSecretKeyFile !== undefined) {
    const { schema } = settings.STRIPE_SECRET_KEY;
    const read = secretOf(own.stripeSecretKeyFile, folder, schema, IS_NO_KEY);
    if ('value' in read) {
      secretKey = read.value;
      problems.push(...modeProblems(id, secretKey, installationKey));
    } else problems.push(`${id}.stripeSecretKeyFile ${read.problem}`);
  }
  if (own.stripeWebhookSecretFile !== undefined) {
    const { schema } = settings.STRIPE_WEBHOOK_SECRET;
    const read = secretOf(own.stripeWebhookSecretFile, folder, schema, IS_NO_SECRET);
    if ('value' in read) webhookSecrets = read.value;
    else problems.push(`${id}.stripeWebhookSecretFile ${read.problem}`);
  }
  return { account: { secretKey, account: own.stripeAccount, webhookSecrets }, problems };
};

/**
 * Reads the accounts of all merchants that have one; a relative path counts from `folder`. Never throws:
 * each problem is a line that names merchant and field, and none shows a secret.
 */
export const readMerchantAccounts = (
  merchants: ReadonlyMap<string, MerchantSettings>,
  installationKey: string,
  folder: string,
): { accounts: ReadonlyMap<string, MerchantAccount>; problems: string[] } => {
  const accounts = new Map<string, MerchantAccount>();
  const problems: string[] = [];
  for (const [id, own] of merchants) {
    problems.push(...combinationProblems(id, own));
    if (own.stripeAccount === undefined && own.stripeSecretKeyFile === undefined) continue;
    const read = accountOf(id, own, installationKey, folder);
    accounts.set(id, read.account);
    problems.push(...read.problems);
  }
  return { accounts, problems };
};
