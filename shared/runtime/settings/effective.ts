/** For operators (`GET /ops/v1/settings`, `payments doctor`). */
import { join } from 'node:path';
import type { Config, EffectiveSetting } from '../config.ts';
import {
  defaultOf,
  PUBLIC_KEY_ALGORITHMS,
  SECRET_ALGORITHM,
  SETTING_NAMES,
  settings,
} from './table.ts';

const NOT_SET = 'not set';
const CREDENTIALS = /^([a-z+]+:\/\/)[^/?#]*@/i;
const SECRET_PARAMETER = /([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*/gi;

export const withoutSecrets = (address: string): string =>
  address.replace(CREDENTIALS, '$1***@').replace(SECRET_PARAMETER, '$1***');

/** An address without its secrets, a secret by its length alone. */
export const shownSetting = (name: string, value: string, isSecret: boolean): string => {
  if (/^[a-z+]+:\/\//i.test(value) && /_(URL|ENDPOINT)$/.test(name)) return withoutSecrets(value);
  return isSecret ? `hidden (${Buffer.byteLength(value)} bytes)` : value;
};

type Known = Omit<Config, 'effective'>;

const secretPlace =
  (file: string) =>
  ({ mode, dataDir }: Known): string =>
    mode === 'embedded' ? `hidden (in ${join(dataDir, file)})` : NOT_SET;

/** What holds without a default of the table, or next to it. */
const DEFAULTS: { [Name in keyof typeof settings]?: (config: Known) => string | number } = {
  DATA_DIR: ({ dataDir }) => dataDir,
  STRIPE_TEST_TOKENS: ({ stripe }) => String(stripe?.testTokens ?? NOT_SET),
  JWT_MERCHANT_CLAIM: ({ tokens }) => tokens.merchantClaims.join(','),
  JWT_ALGORITHMS: ({ tokens: { keys } }) =>
    (keys.kind === 'secret' ? [SECRET_ALGORITHM] : PUBLIC_KEY_ALGORITHMS).join(','),
  ACCEPTED_BRANDS: () => 'all',
  RATE_LIMIT_BURST: ({ rules }) => rules.rateLimit.burst,
  IDEMPOTENCY_SECRET: secretPlace('idempotency.secret'),
  WEBHOOK_SECRET: secretPlace('webhook.secret'),
  PERSONAL_DATA_KEK: secretPlace('personal.kek'),
};

/** `env`: without blank settings. */
export const effectiveSettings = (env: NodeJS.ProcessEnv, config: Known): EffectiveSetting[] =>
  SETTING_NAMES.map((name) => {
    const { isSecret } = settings[name];
    const value = env[name]?.trim();
    if (value) return { name, value: shownSetting(name, value, isSecret), origin: 'environment' };
    const file = isSecret && env[`${name}_FILE`]?.trim();
    if (file) return { name, value: `hidden (in ${file})`, origin: 'file' };
    const inEffect = DEFAULTS[name]?.(config) ?? defaultOf(name, config.mode, env) ?? NOT_SET;
    return { name, value: String(inEffect), origin: 'default' };
  });
