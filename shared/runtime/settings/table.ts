/** How each setting is parsed; docs/settings.md says what it means and what holds where it is not set. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { CARD_BRANDS } from '../../payment/card.ts';

/** `provider`: the simulated one alone. The last three: docs/several-processes.md. */
export type Mode = 'embedded' | 'provider' | 'command-api' | 'query-api' | 'projector';

export const isDistributed = (mode: Mode): boolean => mode !== 'embedded' && mode !== 'provider';

const PORTS: Record<Mode, string> = {
  embedded: '8080',
  'command-api': '8081',
  'query-api': '8082',
  projector: '8083',
  provider: '8090',
};

/** For the shared secret; no setting can allow another (gaps §10). */
export const SECRET_ALGORITHM = 'HS256';

export const LOCAL_KEY_ALGORITHM = 'ES256';

/** For an issuer's keys. With an HMAC among them a public key could serve as a secret. */
export const PUBLIC_KEY_ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

const PROVIDER_NAME_MAX = 255;

/** The name of a provider in events (ADR-0247): `http:`, host and path. It outlives the change of a secret. */
export const providerNameAt = (address: string): string => {
  const { host, pathname } = new URL(address);
  return `http:${host}${pathname.replace(/\/+$/, '')}`.slice(0, PROVIDER_NAME_MAX);
};

/** To the letter: with a final slash or a host in upper case it would silently be the name of none. */
const isProviderName = (text: string): boolean => {
  if (text === 'simulator' || text === 'stripe') return true;
  // The port that one of the schemes leaves out stands in the name of the other.
  const addresses = ['http', 'https'].map((scheme) => text.replace(/^http:/, `${scheme}://`));
  return addresses.some((address) => URL.canParse(address) && providerNameAt(address) === text);
};

export const isLiveKey = (key: string): boolean => /^(sk|rk)_live_/.test(key);

export const STRIPE_API_URL_DEFAULT = 'https://api.stripe.com';
export const STRIPE_API_VERSION_DEFAULT = '2026-10-28.endive';
export const TOPIC_PREFIX_DEFAULT = 'payments';
const DAY_MS = 86_400_000;
// A timer of Node holds 24.8 days, and waits get a random tenth more.
const INTERVAL_MS_HIGHEST = 20 * DAY_MS;
// Half of the 10 s of a stop.
const DRAIN_MS_HIGHEST = 5_000;
// More operations bring a payment's document near what engines take.
const MAX_OPERATIONS_HIGHEST = 5_000;
const ALGORITHMS = [...PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHM];
export const PLAINTEXT_ENGINES = ['eventstoredb', 'mongodb', 'kafka', 'jwks'] as const;

// Messages never hold the value, which may be a secret.
const checked = (holds: (value: string) => boolean, error: string) =>
  z.string().refine(holds, { error, abort: true });

const matching = (pattern: RegExp, error: string) => checked((value) => pattern.test(value), error);

const wholeNumber = (min: number, max: number, unit = '') => {
  const error = `must be a whole number ${unit === '' ? '' : `of ${unit} `}from ${min} to ${max}`;
  const holds = (value: string) =>
    /^[0-9]{1,16}$/.test(value) && Number(value) >= min && Number(value) <= max;
  return checked(holds, error).transform(Number);
};

const split = (value: string) => value.split(',').map((item) => item.trim());
const listOf = (holds: (item: string) => boolean, error: string) =>
  checked((value) => split(value).every(holds), error).transform(split);

const listAmong = <T extends string>(values: readonly T[]) => {
  const isOne = (item: string): item is T => (values as readonly string[]).includes(item);
  const list = listOf(isOne, `must be a comma list of ${values.join(', ')}`);
  return list.transform((items) => items.filter(isOne));
};

const oneOf = <const T extends string>(...values: readonly T[]) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });
const flag = oneOf('true', 'false').transform((value) => value === 'true');

const isHttpUrl = (value: string) => /^https?:\/\//i.test(value) && URL.canParse(value);
const hasNoCredentials = (value: string) =>
  new URL(value).username + new URL(value).password === '';
const httpUrl = checked(isHttpUrl, 'must be an http or https address').refine(hasNoCredentials, {
  error: 'must not hold a user name or a password',
});

const oneLine = matching(/^\P{Cc}*$/u, 'must not hold control characters');
const file = oneLine;
const rate = wholeNumber(0, 1_000_000);
const callMs = wholeNumber(1, 600_000, 'milliseconds');
const drainMs = wholeNumber(0, DRAIN_MS_HIGHEST, 'milliseconds');
const delayMs = (item: string) =>
  /^[0-9]{1,8}$/.test(item) && Number(item) >= 1 && Number(item) <= DAY_MS;
const plainName = (max: number) =>
  matching(
    new RegExp(`^[A-Za-z0-9._-]{1,${max}}$`),
    `must be 1 to ${max} characters of A-Z, a-z, 0-9, dot, _ and -`,
  );
const isEventStoreUrl = (value: string) =>
  /^esdb(\+discover)?:\/\/[^/?#]+/i.test(value) && !/\s/.test(value);
const isBroker = (item: string) =>
  /^[A-Za-z0-9._-]{1,255}:[0-9]{1,5}$/.test(item) || /^\[[0-9a-f:]+\]:[0-9]{1,5}$/i.test(item);

const isNetwork = (item: string) => {
  const [address = '', prefix = '', ...rest] = item.split('/');
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && /^[0-9]{1,3}$/.test(prefix) && Number(prefix) <= bits;
};

/** Where the mode or another setting decides. */
type DefaultIn = (mode: Mode, env: NodeJS.ProcessEnv) => string;

/** Of a process among several, else of one alone. */
const inSeveral =
  (several: string, alone: string): DefaultIn =>
  (mode) =>
    isDistributed(mode) ? several : alone;

/** A call to Stripe is two round trips, the second one to the issuer. */
const withStripe =
  (stripe: string, other: string): DefaultIn =>
  (_mode, { PROVIDER: provider }) =>
    provider === 'stripe' ? stripe : other;

/** A setting whose default is parsed as if it were set. */
const setting = <S extends z.ZodType>(byDefault: string | DefaultIn | undefined, schema: S) => ({
  byDefault,
  schema,
  isSecret: false,
});

const optional = <S extends z.ZodType>(schema: S) => setting(undefined, schema.optional());

/** It may hold a secret: `X_FILE` can give it as a file. */
const secret = <S extends z.ZodType>(schema: S) => ({ ...optional(schema), isSecret: true });

export const settings = {
  HOST: setting(
    '127.0.0.1',
    matching(/^[A-Za-z0-9.:_%-]{1,255}$/, 'must be a host name or an address'),
  ),
  PORT: setting((mode) => PORTS[mode], wholeNumber(0, 65_535)),
  DATA_DIR: setting('./data', file),
  EVENTSTOREDB_URL: secret(
    checked(isEventStoreUrl, 'must be an address such as esdb://localhost:2113?tls=false'),
  ),
  MONGODB_URL: secret(
    matching(
      /^mongodb(\+srv)?:\/\/[^/?#]+\/[A-Za-z0-9_-]{1,38}(\?|$)/,
      'must be an address with a database name, such as mongodb://localhost:27017/payments',
    ),
  ),
  KAFKA_BROKERS: optional(listOf(isBroker, 'must be a comma list of host:port')),
  KAFKA_TOPIC_PREFIX: setting(TOPIC_PREFIX_DEFAULT, plainName(200)),
  KAFKA_TLS: setting('false', flag),
  KAFKA_CA_FILE: optional(file),
  KAFKA_SASL_MECHANISM: optional(oneOf('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512')),
  KAFKA_SASL_USERNAME: optional(oneLine),
  KAFKA_SASL_PASSWORD: secret(z.string()),
  PLAINTEXT_ALLOWED: optional(listAmong(PLAINTEXT_ENGINES)),
  JWT_SECRET: secret(z.string()),
  JWT_JWKS_URL: optional(httpUrl),
  JWT_JWKS_FILE: optional(file),
  JWT_ISSUER: optional(oneLine),
  JWT_AUDIENCE: optional(oneLine),
  JWT_MERCHANT_CLAIM: optional(
    listOf((item) => /^[\x21-\x7e]{1,64}$/.test(item), 'must be a comma list of claim names'),
  ),
  JWT_ALGORITHMS: optional(
    listOf((item) => item.toLowerCase() !== 'none', 'must not allow none').refine(
      (items) => items.every((item) => ALGORITHMS.includes(item)),
      { error: `must be a comma list of ${ALGORITHMS.join(', ')}` },
    ),
  ),
  PROVIDER: setting(
    (_mode, { PROVIDER_URL: url }) => (url === undefined ? 'simulator' : 'http'),
    oneOf('simulator', 'http', 'stripe'),
  ),
  PROVIDER_URL: optional(httpUrl),
  PROVIDER_SAME_AS: optional(
    listOf(
      isProviderName,
      'must be a comma list of simulator, stripe and http:host/path, as events have them',
    ),
  ),
  PROVIDER_TOKEN: secret(matching(/^[\x21-\x7e]+$/, 'must be visible ASCII without spaces')),
  PROVIDER_ALLOW_HTTP: setting('false', flag),
  PROVIDER_CONNECT_TIMEOUT_MS: setting('1000', callMs),
  PROVIDER_TIMEOUT_MS: setting(withStripe('25000', '5000'), callMs),
  AUTHENTICATION_TIMEOUT_MS: setting('900000', wholeNumber(1, 86_400_000, 'milliseconds')),
  STRIPE_SECRET_KEY: secret(
    matching(
      /^(sk|rk)_(test|live)_[A-Za-z0-9_]{1,250}$/,
      'must be a secret or restricted key of Stripe (sk_test_, rk_test_, sk_live_ or rk_live_)',
    ),
  ),
  STRIPE_LIVE: setting('false', flag),
  STRIPE_API_URL: setting(STRIPE_API_URL_DEFAULT, httpUrl),
  STRIPE_API_VERSION: setting(
    STRIPE_API_VERSION_DEFAULT,
    matching(
      /^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.[a-z]{1,32})?$/,
      'must be a version of the API of Stripe such as 2026-10-28.endive',
    ),
  ),
  STRIPE_ACCOUNT: optional(
    matching(/^acct_[A-Za-z0-9]{1,64}$/, 'must be the id of an account of Stripe (acct_)'),
  ),
  STRIPE_TEST_TOKENS: optional(flag),
  STRIPE_CREATES_PER_SECOND: setting('25', wholeNumber(0, 1_000)),
  STRIPE_WEBHOOK_SECRET: secret(
    listOf(
      (item) => /^whsec_[A-Za-z0-9+/=_-]{8,250}$/.test(item),
      'must be a signing secret of Stripe (whsec_)',
    ).refine((items) => items.length <= 2, { error: 'must hold two secrets at most' }),
  ),
  REQUEST_BUDGET_MS: setting(withStripe('30000', '10000'), callMs),
  RECOVERY_DELAYS_MS: setting(
    '1000,2000,5000,10000,30000,60000,300000,900000',
    listOf(delayMs, `must be a comma list of milliseconds from 1 to ${DAY_MS}`).transform((items) =>
      items.map(Number),
    ),
  ),
  RECONCILE_INTERVAL_MS: setting('3600000', wholeNumber(0, DAY_MS, 'milliseconds')),
  MAX_AMOUNT: setting('99999999', wholeNumber(1, Number.MAX_SAFE_INTEGER)),
  ACCEPTED_BRANDS: optional(listAmong(CARD_BRANDS)),
  MERCHANT_REFERENCE: setting('allow', oneOf('allow', 'unique')),
  MERCHANTS_FILE: optional(file),
  // On for several processes, off for one on its own (gaps §11).
  RATE_LIMIT_PER_SECOND: setting(inSeveral('1000', '0'), rate),
  RATE_LIMIT_BURST: optional(rate),
  RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: setting(inSeveral('50', '0'), rate),
  MAX_IN_FLIGHT: setting('2048', wholeNumber(1, 1_000_000)),
  // A process on its own has no gateway that could send requests to another one.
  SHUTDOWN_DRAIN_MS: setting(inSeveral('3000', '0'), drainMs),
  SEALING_KEY_FILE: optional(file),
  SEALED_HEAD_FILE: optional(file),
  SEAL_EVENTS_MAX: setting('10000', wholeNumber(1, 1_000_000_000)),
  SEAL_INTERVAL_MS: setting('3600000', wholeNumber(100, INTERVAL_MS_HIGHEST, 'milliseconds')),
  VERIFY_INTERVAL_MS: setting('86400000', wholeNumber(0, INTERVAL_MS_HIGHEST, 'milliseconds')),
  MAX_OPERATIONS_PER_PAYMENT: setting('1000', wholeNumber(1, MAX_OPERATIONS_HIGHEST)),
  IDEMPOTENCY_SECRET: secret(z.string()),
  IDEMPOTENCY_SECRET_PREVIOUS: secret(z.string()),
  WEBHOOK_SECRET: secret(z.string()),
  PERSONAL_DATA_KEK: secret(z.string()),
  PERSONAL_DATA_PREVIOUS_KEK: secret(z.string()),
  ERASURE_HOLD_DAYS: setting('180', wholeNumber(0, 36_500, 'days')),
  ERASURE_APPROVERS: setting('2', wholeNumber(1, 2)),
  ERASURE_LEDGER: optional(file),
  ERASE_AFTER_DAYS: setting('0', wholeNumber(0, 36_500, 'days')),
  WEBHOOK_ALLOWED_NETWORKS: optional(
    listOf(isNetwork, 'must be a comma list of networks such as 10.0.0.0/8'),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(httpUrl),
  OTEL_SERVICE_NAME: setting('payments', plainName(100)),
  OTEL_TRACES_SAMPLER_ARG: setting(
    '0.1',
    matching(
      /^(0|1|0?\.[0-9]{1,9}|1\.0{1,9})$/,
      'must be a number from 0 to 1 such as 0.1',
    ).transform(Number),
  ),
  LOG_LEVEL: setting('info', oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')),
};

export const SECRET_SETTINGS: readonly string[] = Object.entries(settings)
  .filter(([, { isSecret }]) => isSecret)
  .map(([name]) => name);

type Settings = typeof settings;
export const SETTING_NAMES = Object.keys(settings) as (keyof Settings)[];
const schema = z.object(
  Object.fromEntries(SETTING_NAMES.map((name) => [name, settings[name].schema])) as {
    [Name in keyof Settings]: Settings[Name]['schema'];
  },
);

export type ParsedSettings = z.infer<typeof schema>;

/** As it would be set; undefined where docs/settings.md says what holds. */
export const defaultOf = (name: keyof Settings, mode: Mode, env: NodeJS.ProcessEnv) => {
  const { byDefault } = settings[name];
  return typeof byDefault === 'function' ? byDefault(mode, env) : byDefault;
};

const withDefaults = (mode: Mode, env: NodeJS.ProcessEnv) => ({
  ...Object.fromEntries(SETTING_NAMES.map((name) => [name, defaultOf(name, mode, env)])),
  ...env,
});

/** An invalid setting counts as unset, so that one start lists every problem. */
export const parseSettings = (env: NodeJS.ProcessEnv, mode: Mode) => {
  const read = schema.safeParse(withDefaults(mode, env));
  const issues = read.error?.issues ?? [];
  const invalid = issues.map(({ path }) => String(path[0]));
  const valid = Object.entries(env).filter(([name]) => !invalid.includes(name));
  return {
    parsed: read.data ?? schema.parse(withDefaults(mode, Object.fromEntries(valid))),
    invalid,
    problems: issues.map(({ message }, at) => `${invalid[at]} ${message}`),
  };
};
