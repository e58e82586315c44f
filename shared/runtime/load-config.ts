/** Lists all problems of the environment (docs/settings.md), and repeats no secret. */
import { type Config, configOf, type TokenKeys } from './config.ts';
import { effectiveSettings } from './settings/effective.ts';
import {
  type Report,
  readJson,
  readText,
  settingsPath,
  withSecretFiles,
} from './settings/files.ts';
import { type Merchants, readMerchantAccounts, readMerchants } from './settings/merchants.ts';
import { misspelt, settingProblems } from './settings/problems.ts';
import { type Mode, type ParsedSettings, parseSettings } from './settings/table.ts';

const isPublicKey = (key: unknown): key is Record<string, unknown> =>
  typeof key === 'object' && key !== null && 'kty' in key && !('d' in key) && !('k' in key);

const readKeys = (path: string, report: Report): TokenKeys | undefined => {
  const read = readJson(path, report);
  if (read === undefined) return undefined;
  const keys = (read.value as { keys?: unknown } | null)?.keys;
  return Array.isArray(keys) && keys.length > 0 && keys.every(isPublicKey)
    ? { kind: 'jwks-file', jwks: { keys } }
    : report('must name a JWK set of public keys');
};

const keysOf = (parsed: ParsedSettings, report: Report): TokenKeys | undefined => {
  const { JWT_SECRET: secret, JWT_JWKS_URL: url, JWT_JWKS_FILE: file } = parsed;
  if (secret !== undefined) return { kind: 'secret', secret };
  if (url !== undefined) return { kind: 'jwks-url', url };
  return file === undefined
    ? { kind: 'local', folder: settingsPath(parsed.DATA_DIR) }
    : readKeys(settingsPath(file), report);
};

const kafkaCaOf = ({ KAFKA_CA_FILE: file }: ParsedSettings, report: Report) => {
  const pem = file === undefined ? undefined : readText(settingsPath(file), report);
  if (pem?.includes('-----BEGIN CERTIFICATE-----') === false)
    report('must name a file with certificates in PEM');
  return pem;
};

/** Only a process that talks to Stripe reads the keys of merchants. */
const accountsOf = (parsed: ParsedSettings, merchants: Merchants, report: Report) =>
  parsed.PROVIDER === 'stripe' && parsed.STRIPE_SECRET_KEY !== undefined
    ? readMerchantAccounts(merchants, parsed.STRIPE_SECRET_KEY, report)
    : new Map();

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
};

/** The config, next to all that is wrong between the settings and with the files that they name. */
const configFrom = (mode: Mode, parsed: ParsedSettings) => {
  const problems = settingProblems(mode, parsed);
  const reportFor =
    (name: string): Report =>
    (problem) =>
      void problems.push({ of: [name], line: `${name} ${problem}` });
  const kafkaCa = kafkaCaOf(parsed, reportFor('KAFKA_CA_FILE'));
  const keys = keysOf(parsed, reportFor('JWT_JWKS_FILE'));
  const ofMerchants = reportFor('MERCHANTS_FILE');
  const merchants = readMerchants(parsed.MERCHANTS_FILE, ofMerchants);
  const accounts = accountsOf(parsed, merchants, ofMerchants);
  const config = keys && configOf(mode, parsed, { keys, merchants, accounts, kafkaCa });
  return { config, problems };
};

/** An empty text counts as unset. Never throws: each problem is one line that names its setting. */
export const loadConfig = (
  env: NodeJS.ProcessEnv,
  mode: Mode = 'embedded',
): { ok: true; config: Config } | { ok: false; problems: string[] } => {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()));
  const given = withSecretFiles(set);
  const { parsed, invalid, ...own } = parseSettings(given.env, mode);
  const { config, ...whole } = configFrom(mode, parsed);
  const unread = new Set([...given.failed, ...invalid]);
  const certain = whole.problems.filter(({ of }) => !of.some((name) => unread.has(name)));
  const problems = [...given.problems, ...own.problems, ...certain.map(({ line }) => line)];
  // A misspelt name is often why another setting is missing.
  if (problems.length > 0 || config === undefined)
    return { ok: false, problems: [...problems, ...misspelt(set)] };
  const warnings = [...config.warnings, ...misspelt(set)];
  const effective = effectiveSettings(set, config);
  return { ok: true, config: deepFreeze({ ...config, warnings, effective }) };
};
