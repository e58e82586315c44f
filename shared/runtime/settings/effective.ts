/**
 * Which value of each setting is in effect in a process, and where it comes from, with every secret
 * hidden: what an operator is shown (`GET /ops/v1/settings`, `payments doctor`). Where a setting's
 * default is described in words, the value here is the one that the process works with.
 */
import { join } from 'node:path';
import type { Config, EffectiveSetting } from '../config.ts';
import { PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHM } from '../key-algorithms.ts';
import { SECRET_SETTINGS, settings } from './table.ts';

const NOT_SET = 'not set';
const CREDENTIALS = /^([a-z+]+:\/\/)[^/?#]*@/i;
const SECRET_PARAMETER = /([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*/gi;

/** An address without the user, password and secret parameters in it. */
export const withoutSecrets = (address: string): string =>
  address.replace(CREDENTIALS, '$1***@').replace(SECRET_PARAMETER, '$1***');

/** A value as it may be shown: an address without its secrets, a secret by its length alone. */
export const shownSetting = (name: string, value: string, isSecret: boolean): string => {
  if (/^[a-z+]+:\/\//i.test(value) && /_(URL|ENDPOINT)$/.test(name)) return withoutSecrets(value);
  return isSecret ? `hidden (${Buffer.byteLength(value)} bytes)` : value;
};

const algorithmsOf = ({ tokens: { algorithms, keys } }: Config): string =>
  (algorithms ?? (keys.kind === 'secret' ? [SECRET_ALGORITHM] : PUBLIC_KEY_ALGORITHMS)).join(',');

const secretPlace =
  (file: string) =>
  ({ mode, dataDir }: Config): string =>
    mode === 'embedded' ? `hidden (in ${join(dataDir, file)})` : NOT_SET;

/** The settings whose default is told in words, or depends on others. */
const DEFAULTS: { [Name in keyof typeof settings]?: (config: Config) => string | number } = {
  PORT: ({ port }) => port,
  DATA_DIR: ({ dataDir }) => dataDir,
  PROVIDER: ({ provider }) => provider.kind,
  PROVIDER_TIMEOUT_MS: ({ provider }) => provider.timeoutMs,
  REQUEST_BUDGET_MS: ({ requestBudgetMs }) => requestBudgetMs,
  STRIPE_TEST_TOKENS: ({ stripe }) => String(stripe?.testTokens ?? NOT_SET),
  JWT_ALGORITHMS: algorithmsOf,
  ACCEPTED_BRANDS: () => 'all',
  RATE_LIMIT_PER_SECOND: ({ rules }) => rules.rateLimit.perSecond,
  RATE_LIMIT_BURST: ({ rules }) => rules.rateLimit.burst,
  RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: ({ unauthenticatedRateLimit: { perSecond } }) => perSecond,
  IDEMPOTENCY_SECRET: secretPlace('idempotency.secret'),
  WEBHOOK_SECRET: secretPlace('webhook.secret'),
};

type Name = keyof typeof settings;

/** The table's default where it is a value and no description of one. */
const tableDefault = (name: Name): string => {
  const { defaultText, schema } = settings[name];
  const isValue = defaultText !== 'none' && !/\s/.test(defaultText);
  return isValue && schema.safeParse(defaultText).success ? defaultText : NOT_SET;
};

const effectiveSetting = (env: NodeJS.ProcessEnv, config: Config, name: Name): EffectiveSetting => {
  const isSecret = SECRET_SETTINGS.includes(name);
  const value = env[name]?.trim() ?? '';
  if (value !== '') {
    return { name, value: shownSetting(name, value, isSecret), origin: 'environment' };
  }
  const file = isSecret ? (env[`${name}_FILE`]?.trim() ?? '') : '';
  if (file !== '') return { name, value: `hidden (in ${file})`, origin: 'file' };
  return { name, value: String(DEFAULTS[name]?.(config) ?? tableDefault(name)), origin: 'default' };
};

/** Every setting as it is in effect with `config`, which was parsed from `env`. */
export const effectiveSettings = (env: NodeJS.ProcessEnv, config: Config): EffectiveSetting[] =>
  (Object.keys(settings) as Name[]).map((name) => effectiveSetting(env, config, name));
