/** test/config/settings-page.test.ts compares the table with docs/settings.md. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { CARD_BRANDS } from '../../payment/card.ts';
import { PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHM } from '../key-algorithms.ts';
import { isProviderName } from './provider-name.ts';

export const STRIPE_API_URL_DEFAULT = 'https://api.stripe.com';
export const STRIPE_API_VERSION_DEFAULT = '2026-10-28.endive';
export const TOPIC_PREFIX_DEFAULT = 'payments';
const DAY_MS = 86_400_000;
// A timer of Node holds 24.8 days, and waits get a random tenth more.
const INTERVAL_MS_HIGHEST = 20 * DAY_MS;
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
const delayMs = (item: string) =>
  /^[0-9]{1,8}$/.test(item) && Number(item) >= 1 && Number(item) <= DAY_MS;
const isEventStoreUrl = (value: string) =>
  /^esdb(\+discover)?:\/\/[^/?#]+/i.test(value) && !/\s/.test(value);
const isBroker = (item: string) =>
  /^[A-Za-z0-9._-]{1,255}:[0-9]{1,5}$/.test(item) || /^\[[0-9a-f:]+\]:[0-9]{1,5}$/i.test(item);

const isNetwork = (item: string) => {
  const [address = '', prefix = '', ...rest] = item.split('/');
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return rest.length === 0 && /^[0-9]{1,3}$/.test(prefix) && Number(prefix) <= bits;
};

/** A setting whose default is parsed as if it were set. */
const setting = <S extends z.ZodType>(defaultText: string, meaning: string, schema: S) => ({
  defaultText,
  meaning,
  schema,
  hasDefault: true,
  isSecret: false,
});

/** `defaultText` says what holds where it is not set. */
const optional = <S extends z.ZodType>(defaultText: string, meaning: string, schema: S) => ({
  ...setting(defaultText, meaning, schema.optional()),
  hasDefault: false,
});

/** It may hold a secret: `X_FILE` can give it as a file. */
const secret = <S extends z.ZodType>(defaultText: string, meaning: string, schema: S) => ({
  ...optional(defaultText, meaning, schema),
  isSecret: true,
});

export const settings = {
  HOST: setting(
    '127.0.0.1',
    'the address it listens on',
    matching(/^[A-Za-z0-9.:_%-]{1,255}$/, 'must be a host name or an address'),
  ),
  PORT: optional(
    '8080; each by itself: command API 8081, query API 8082, projector 8083, provider 8090',
    'the port it listens on; 0 takes a free one',
    wholeNumber(0, 65_535),
  ),
  DATA_DIR: setting(
    './data',
    'embedded store, keys, logs; files have mode 0600, the folder 0700',
    file,
  ),
  EVENTSTOREDB_URL: secret(
    'none',
    '`esdb://…`: events go there instead of SQLite',
    checked(isEventStoreUrl, 'must be an address such as esdb://localhost:2113?tls=false'),
  ),
  MONGODB_URL: secret(
    'none',
    '`mongodb://…`, database name in the path: read models go there',
    matching(
      /^mongodb(\+srv)?:\/\/[^/?#]+\/[A-Za-z0-9_-]{1,38}(\?|$)/,
      'must be an address with a database name, such as mongodb://localhost:27017/payments',
    ),
  ),
  KAFKA_BROKERS: optional(
    'none',
    'comma list of `host:port`: events and states are published',
    listOf(isBroker, 'must be a comma list of host:port'),
  ),
  KAFKA_TOPIC_PREFIX: setting(
    TOPIC_PREFIX_DEFAULT,
    'topics `<prefix>.events.v1`, `<prefix>.state.v1`, `<prefix>.seals.v1`',
    matching(
      /^[A-Za-z0-9._-]{1,200}$/,
      'must be 1 to 200 characters of A-Z, a-z, 0-9, dot, _ and -',
    ),
  ),
  KAFKA_TLS: setting('false', '`true`: the brokers are reached over TLS', flag),
  KAFKA_CA_FILE: optional(
    "Node's own list",
    "the certificates, in PEM, that the brokers' are signed by; with `KAFKA_TLS`",
    file,
  ),
  KAFKA_SASL_MECHANISM: optional(
    'none',
    'how this service logs in to Kafka: `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`',
    oneOf('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'),
  ),
  KAFKA_SASL_USERNAME: optional('none', 'with `KAFKA_SASL_MECHANISM`', oneLine),
  KAFKA_SASL_PASSWORD: secret('none', 'with `KAFKA_SASL_MECHANISM`', z.string()),
  PLAINTEXT_ALLOWED: optional(
    'none',
    'comma list of engines (`eventstoredb`, `mongodb`, `kafka`, `jwks`) that may be reached without TLS on hosts other than loopback; else refused',
    listAmong(PLAINTEXT_ENGINES),
  ),
  JWT_SECRET: secret(
    'none',
    'HS256 shared secret; under 32 bytes: a warning, refused in the three-process mode',
    z.string(),
  ),
  JWT_JWKS_URL: optional(
    'none',
    'where the public keys of an issuer are; needs `JWT_ISSUER` and `JWT_AUDIENCE`',
    httpUrl,
  ),
  JWT_JWKS_FILE: optional('none', 'a file with the public keys of an issuer (a JWK set)', file),
  JWT_ISSUER: optional('none', '`iss` of every token, checked when set', oneLine),
  JWT_AUDIENCE: optional('none', '`aud` of every token, checked when set', oneLine),
  JWT_MERCHANT_CLAIM: optional(
    'merchant_id,client_id,sub',
    'which claim names the merchant, the first one present; with `JWT_JWKS_URL` name the claim of your issuer, else the start warns',
    listOf((item) => /^[\x21-\x7e]{1,64}$/.test(item), 'must be a comma list of claim names'),
  ),
  JWT_ALGORITHMS: optional(
    'by key kind',
    'comma list of allowed algorithms; `none` is refused',
    listOf((item) => item.toLowerCase() !== 'none', 'must not allow none').refine(
      (items) => items.every((item) => ALGORITHMS.includes(item)),
      { error: `must be a comma list of ${ALGORITHMS.join(', ')}` },
    ),
  ),
  PROVIDER: optional(
    'http where `PROVIDER_URL` is set, else simulator',
    'who carries out payments: `simulator`, `http` (a provider that speaks provider.md) or `stripe`',
    oneOf('simulator', 'http', 'stripe'),
  ),
  PROVIDER_URL: optional(
    'none',
    'base address of a provider that speaks provider.md, https unless its host is loopback; unset: the simulator runs in this process; required by a command API of its own',
    httpUrl,
  ),
  PROVIDER_SAME_AS: optional(
    'none',
    'comma list of earlier names of the provider that is set, as events have them (`simulator`, `stripe`, `http:host/path`): for the same provider at another address',
    listOf(
      isProviderName,
      'must be a comma list of simulator, stripe and http:host/path, as events have them',
    ),
  ),
  PROVIDER_TOKEN: secret(
    'none',
    'bearer token for the provider',
    matching(/^[\x21-\x7e]+$/, 'must be visible ASCII without spaces'),
  ),
  PROVIDER_ALLOW_HTTP: setting(
    'false',
    '`true` allows a plain http provider on a host that is not loopback',
    flag,
  ),
  PROVIDER_CONNECT_TIMEOUT_MS: setting(
    '1000',
    'one provider call: until it is connected',
    wholeNumber(1, 600_000, 'milliseconds'),
  ),
  PROVIDER_TIMEOUT_MS: optional(
    '5000; with Stripe 25000',
    'one provider call in all; not above `REQUEST_BUDGET_MS`',
    wholeNumber(1, 600_000, 'milliseconds'),
  ),
  STRIPE_SECRET_KEY: secret(
    'none',
    'with `PROVIDER=stripe`: `sk_test_…`, `rk_test_…`, or a live one with `STRIPE_LIVE`',
    matching(
      /^(sk|rk)_(test|live)_[A-Za-z0-9_]{1,250}$/,
      'must be a secret or restricted key of Stripe (sk_test_, rk_test_, sk_live_ or rk_live_)',
    ),
  ),
  STRIPE_LIVE: setting('false', '`true` allows a live key: money moves', flag),
  STRIPE_API_URL: setting(
    STRIPE_API_URL_DEFAULT,
    "Stripe's address; https unless its host is loopback",
    httpUrl,
  ),
  STRIPE_API_VERSION: setting(
    STRIPE_API_VERSION_DEFAULT,
    'the version of its API that is requested; the one that this driver was written for',
    matching(
      /^[0-9]{4}-[0-9]{2}-[0-9]{2}(\.[a-z]{1,32})?$/,
      'must be a version of the API of Stripe such as 2026-10-28.endive',
    ),
  ),
  STRIPE_ACCOUNT: optional(
    'none',
    'the connected account that payments are made for (`Stripe-Account`)',
    matching(/^acct_[A-Za-z0-9]{1,64}$/, 'must be the id of an account of Stripe (acct_)'),
  ),
  STRIPE_TEST_TOKENS: optional(
    'true with a test key',
    "`true`: Stripe's own test numbers are sent as its test tokens, which need no permission for raw cards",
    flag,
  ),
  STRIPE_CREATES_PER_SECOND: setting(
    '25',
    'creates, captures, voids and refunds a second, each; what Stripe allows for an endpoint by default; 0 is off',
    wholeNumber(0, 1_000),
  ),
  STRIPE_WEBHOOK_SECRET: secret(
    'none',
    'signing secret of `POST /webhooks/stripe`; two, by a comma, while one replaces the other; without one every notice is 401',
    listOf(
      (item) => /^whsec_[A-Za-z0-9+/=_-]{8,250}$/.test(item),
      'must be a signing secret of Stripe (whsec_)',
    ).refine((items) => items.length <= 2, { error: 'must hold two secrets at most' }),
  ),
  REQUEST_BUDGET_MS: optional(
    '10000; with Stripe 30000',
    'one request, waits included',
    wholeNumber(1, 600_000, 'milliseconds'),
  ),
  RECOVERY_DELAYS_MS: setting(
    '1000,2000,5000,10000,30000,60000,300000,900000',
    'the retry schedule of recovery: the wait before each attempt, then hourly',
    listOf(delayMs, `must be a comma list of milliseconds from 1 to ${DAY_MS}`).transform((items) =>
      items.map(Number),
    ),
  ),
  RECONCILE_INTERVAL_MS: setting(
    '3600000',
    "how often the log is compared with the provider's ledger; 0 is off",
    wholeNumber(0, DAY_MS, 'milliseconds'),
  ),
  MAX_AMOUNT: setting(
    '99999999',
    'the largest amount in minor units; BUSINESS_RULE_VIOLATION above',
    wholeNumber(1, Number.MAX_SAFE_INTEGER),
  ),
  ACCEPTED_BRANDS: optional(
    'all',
    'comma list, for example `VISA,MASTERCARD`',
    listAmong(CARD_BRANDS),
  ),
  MERCHANT_REFERENCE: setting(
    'allow',
    'may a reference repeat; `unique`: it names one payment that is not FAILED',
    oneOf('allow', 'unique'),
  ),
  MERCHANTS_FILE: optional('none', 'JSON by merchant id, see below', file),
  RATE_LIMIT_PER_SECOND: optional(
    '0 (three processes: 1000)',
    'requests per merchant; 0 is off',
    wholeNumber(0, 1_000_000),
  ),
  RATE_LIMIT_BURST: optional(
    'twice the rate',
    'requests of one merchant at once',
    wholeNumber(0, 1_000_000),
  ),
  RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: optional(
    '0 (three processes: 50)',
    'per address (IPv6: per /64), requests without a valid token; 0 is off',
    wholeNumber(0, 1_000_000),
  ),
  MAX_IN_FLIGHT: setting(
    '2048',
    'requests at once, from the check of the token until the response is out; of more than 128 one merchant has half at most; above it 503 with `Retry-After`',
    wholeNumber(1, 1_000_000),
  ),
  SEALING_KEY_FILE: optional(
    'made in `DATA_DIR`, with a warning',
    'Ed25519 key (PEM) that seals heads of the log, made where the file is missing; a file that others can read (mode above 0600) is taken with a warning; with the setting, the signed head of the log is kept beside it, each second while anything is written, in `<file>.head`; on a volume that the log is not on. In several processes the projector reads it, the same key in each; without it nothing is sealed',
    file,
  ),
  SEAL_EVENTS_MAX: setting('10000', 'a seal after so many events', wholeNumber(1, 1_000_000_000)),
  SEAL_INTERVAL_MS: setting(
    '3600000',
    'a seal after so long where anything was written',
    wholeNumber(100, INTERVAL_MS_HIGHEST, 'milliseconds'),
  ),
  VERIFY_INTERVAL_MS: setting(
    '86400000',
    'between two scheduled verifications of the whole log, the first some minutes after a start; 0 is off',
    wholeNumber(0, INTERVAL_MS_HIGHEST, 'milliseconds'),
  ),
  MAX_OPERATIONS_PER_PAYMENT: setting(
    '1000',
    'operations on one payment, its create and failed ones included; the next is 422 of its operation; the same in every process',
    wholeNumber(1, MAX_OPERATIONS_HIGHEST),
  ),
  IDEMPOTENCY_SECRET: secret(
    'made in `DATA_DIR` on first start; required with EventStoreDB',
    'keys the hashes of derived ids and fingerprints; every process of one installation has the same; belongs into the backup; 32 bytes at least',
    z.string(),
  ),
  IDEMPOTENCY_SECRET_PREVIOUS: secret(
    'none',
    'an older secret whose hashes are still recognised; 32 bytes at least',
    z.string(),
  ),
  WEBHOOK_SECRET: secret(
    'made in `DATA_DIR` on first start; required with EventStoreDB',
    'the signing secrets of all webhook endpoints are derived from it; every process of one installation has the same; belongs into the backup; 32 bytes at least',
    z.string(),
  ),
  WEBHOOK_ALLOWED_NETWORKS: optional(
    'none',
    'comma list of networks (`10.0.0.0/8`) that webhooks may be sent to although they are not public, there over http too',
    listOf(isNetwork, 'must be a comma list of networks such as 10.0.0.0/8'),
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: optional(
    'none',
    'base address of a collector (`http://localhost:4318`): traces go there over OTLP/HTTP; without it nothing of them is loaded',
    httpUrl,
  ),
  OTEL_SERVICE_NAME: setting(
    'payments',
    'the name of this service in traces',
    matching(
      /^[A-Za-z0-9._-]{1,100}$/,
      'must be 1 to 100 characters of A-Z, a-z, 0-9, dot, _ and -',
    ),
  ),
  OTEL_TRACES_SAMPLER_ARG: setting(
    '0.1',
    'the share of traces that is kept, from 0 to 1; the same in every process',
    matching(
      /^(0|1|0?\.[0-9]{1,9}|1\.0{1,9})$/,
      'must be a number from 0 to 1 such as 0.1',
    ).transform(Number),
  ),
  LOG_LEVEL: setting(
    'info',
    'JSON lines on stdout; to `DATA_DIR/service.log` when stdout is a terminal',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
};

export const settingsTable: { name: string; default: string; meaning: string }[] = Object.entries(
  settings,
).map(([name, row]) => ({ name, default: row.defaultText, meaning: row.meaning }));

export const SECRET_SETTINGS: readonly string[] = Object.entries(settings)
  .filter(([, { isSecret }]) => isSecret)
  .map(([name]) => name);

type Settings = typeof settings;
const rows = Object.entries(settings);
const schema = z.object(
  Object.fromEntries(rows.map(([name, row]) => [name, row.schema])) as {
    [Name in keyof Settings]: Settings[Name]['schema'];
  },
);
const defaults = Object.fromEntries(
  rows.flatMap(([name, { hasDefault, defaultText }]) => (hasDefault ? [[name, defaultText]] : [])),
);

export const parseSettings = (env: NodeJS.ProcessEnv) => schema.safeParse({ ...defaults, ...env });

export type ParsedSettings = z.infer<typeof schema>;
