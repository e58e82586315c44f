/** The settings of single merchants, from the file that `MERCHANTS_FILE` names. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { CARD_BRANDS } from '../../payment/card.ts';

const fileName = z.string().min(1).max(4096).optional();
const rate = z.int().min(0).max(1_000_000).optional();
const merchantSettings = z.strictObject({
  maxAmount: z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
  acceptedBrands: z.array(z.enum(CARD_BRANDS)).min(1).optional(),
  merchantReference: z.enum(['allow', 'unique']).optional(),
  rateLimitPerSecond: rate,
  rateLimitBurst: rate,
  stripeAccount: z
    .string()
    .regex(/^acct_[A-Za-z0-9]{1,64}$/)
    .optional(),
  stripeSecretKeyFile: fileName,
  stripeWebhookSecretFile: fileName,
});
/** One merchant's own settings; for a field left out the installation's setting applies. */
export type MerchantSettings = z.infer<typeof merchantSettings>;
const merchantsFile = z.record(z.string().min(1).max(255), merchantSettings);

const WORDINGS: Record<string, string> = {
  maxAmount: `must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`,
  acceptedBrands: `must be a list of ${CARD_BRANDS.join(', ')}, and hold at least one`,
  merchantReference: 'must be allow or unique',
  rateLimitPerSecond: 'must be a whole number from 0 to 1000000',
  rateLimitBurst: 'must be a whole number from 0 to 1000000',
  stripeAccount: 'must be the id of an account of Stripe (acct_)',
  stripeSecretKeyFile: 'must be the path of a file',
  stripeWebhookSecretFile: 'must be the path of a file',
};

const problemOf = ({ code, path, ...issue }: z.core.$ZodIssue): string => {
  const [merchant, field] = path.map(String);
  if (merchant === undefined) return 'must hold a JSON object with merchant ids as keys';
  if (code === 'unrecognized_keys' && 'keys' in issue) {
    return `${merchant} has unknown fields: ${issue.keys.join(', ')}`;
  }
  if (field === undefined) return `${merchant} must be an object of settings`;
  return `${merchant}.${field} ${WORDINGS[field]}`;
};

const zeroBurstProblems = (merchants: [string, MerchantSettings][]): string[] =>
  merchants
    .filter(([, own]) => own.rateLimitBurst === 0 && (own.rateLimitPerSecond ?? 0) > 0)
    .map(([id]) => `${id}.rateLimitBurst must be at least 1 when rateLimitPerSecond is set`);

/** Entries whose ids are the same merchant, because a name counts in one form (gaps §10). */
const repeatedProblems = (merchants: [string, MerchantSettings][]): string[] =>
  merchants
    .filter(([id], at) => merchants.findIndex(([other]) => other === id) < at)
    .map(([id]) => `${id} stands there twice, composed and decomposed`);

/** A name of an object, or where an object or a list begins or ends, in a text that is JSON. */
const MARKS = /("(?:[^"\\]|\\.)*")(\s*:)?|[{}[\]]/g;

/** What the parser would take without a word: of a name that stands there twice it takes the later. */
const unseenProblems = (text: string): string[] => {
  const problems: string[] = [];
  const open: Set<string>[] = [];
  for (const [mark, quoted, colon] of text.matchAll(MARKS)) {
    if (quoted === undefined) {
      if (mark === '{' || mark === '[') open.push(new Set());
      else open.pop();
    } else if (colon !== undefined) {
      const name: string = JSON.parse(quoted);
      if (name === '__proto__') problems.push('__proto__ can be no name there');
      if (open.at(-1)?.has(name)) problems.push(`${name} stands there twice`);
      open.at(-1)?.add(name);
    }
  }
  return problems;
};

/** Names that no merchant can have; a setting of theirs would be nobody's. */
const nameProblems = (value: unknown): string[] =>
  Object.keys(Object(value)).flatMap((id) => {
    if (id === '') return 'has an entry without the id of a merchant';
    if (id === '*') return '* is no merchant: in a token it stands for all of them';
    return id === id.trim() ? [] : `${JSON.stringify(id)} has spaces around the id of the merchant`;
  });

type MerchantsRead = { merchants: Map<string, MerchantSettings>; problems: string[] };

const failed = (...problems: string[]): MerchantsRead => ({ merchants: new Map(), problems });

/** Reads a file. Never throws; `problem` is a line without the name of the setting. */
export const readText = (file: string): { text: string } | { problem: string } => {
  try {
    return { text: readFileSync(file, 'utf8') };
  } catch (error) {
    return {
      problem: `names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`,
    };
  }
};

/**
 * Parses a JSON file. Never throws. `problem` is a line without the name of the setting; it quotes
 * neither the content nor the parser's message, which may show a secret.
 */
export const readJsonFile = (
  file: string,
): { value: unknown; text: string } | { problem: string } => {
  const read = readText(file);
  if ('problem' in read) return read;
  try {
    return { value: JSON.parse(read.text), text: read.text };
  } catch {
    return { problem: 'names a file that is not JSON' };
  }
};

/** Reads and checks the merchants' file. Never throws; problems are without the setting's name. */
export const readMerchants = (file: string): MerchantsRead => {
  const read = readJsonFile(file);
  if ('problem' in read) return failed(read.problem);
  const problems = [...unseenProblems(read.text), ...nameProblems(read.value)];
  if (problems.length > 0) return failed(...new Set(problems));
  const parsed = merchantsFile.safeParse(read.value);
  if (!parsed.success) return failed(...new Set(parsed.error.issues.map(problemOf)));
  const entries = Object.entries(parsed.data).map(([id, own]): [string, MerchantSettings] => [
    id.normalize('NFC'),
    own,
  ]);
  return {
    merchants: new Map(entries),
    problems: [...zeroBurstProblems(entries), ...repeatedProblems(entries)],
  };
};
