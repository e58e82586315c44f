/**
 * The environment, parsed once (docs/settings.md). With any wrong setting the process does not
 * start: every problem is listed, each line names its setting, and none repeats a value that may be
 * a secret.
 */
import { join, resolve } from 'node:path';
import type { CardBrand } from '../payment/card.ts';
import { type EffectiveSetting, effectiveSettings } from './effective-settings.ts';
import { eventStoreAddressProblems } from './event-store-address.ts';
import { type MerchantSettings, readJsonFile, readMerchants, readText } from './merchants.ts';
import { withSecretFiles } from './secret-files.ts';
import {
  MAX_AMOUNT_DEFAULT,
  MAX_OPERATIONS_DEFAULT,
  type ParsedSettings,
  type PROVIDERS,
  RECOVERY_DELAYS_MS_DEFAULT,
  type SASL_MECHANISMS,
  SEAL_EVENTS_MAX_DEFAULT,
  SEAL_INTERVAL_MS_DEFAULT,
  SECRET_SETTINGS,
  STRIPE_API_URL_DEFAULT,
  STRIPE_API_VERSION_DEFAULT,
  settingsSchema,
  TOPIC_PREFIX_DEFAULT,
  VERIFY_INTERVAL_MS_DEFAULT,
} from './settings.ts';
import {
  distributedProblems,
  isLiveKey,
  kafkaProblems,
  plaintextProblems,
  providerKindOf,
  providerProblems,
  rateProblems,
  ratesOf,
  secretProblems,
  stripeProblems,
  timesOf,
  tokenProblems,
  warningsOf,
} from './settings-problems.ts';

/**
 * `embedded`: everything in one process. `provider`: the simulated provider in a process of its own.
 * The others are the three processes of docs/several-processes.md; each may run more than once.
 */
export type Mode = 'embedded' | 'provider' | DistributedMode;
/** A process that shares its engines with others. */
export type DistributedMode = 'command-api' | 'query-api' | 'projector';

/** The source of the keys that verify tokens (gaps §10). */
type TokenKeys =
  | { kind: 'secret'; secret: string }
  | { kind: 'jwks-url'; url: string }
  | { kind: 'jwks-file'; path: string; jwks: { keys: Record<string, unknown>[] } }
  /** The ES256 key pair in the data folder, made on first use. */
  | { kind: 'local'; folder: string };

type KafkaSecurity = {
  /** Undefined: plain text. `ca` holds certificates in PEM; undefined: Node's own list. */
  tls: { ca: string | undefined } | undefined;
  /** Undefined: no login. Holds a password: never log it. */
  sasl:
    | { mechanism: (typeof SASL_MECHANISMS)[number]; username: string; password: string }
    | undefined;
};

/** A token bucket: `perSecond` 0 is off; `burst` is its size in requests. */
type RateLimit = { perSecond: number; burst: number };

/** The rules of one merchant: its own settings, else the installation's. */
export type MerchantRules = {
  /** In minor units; a higher amount is a BUSINESS_RULE_VIOLATION (gaps §3). */
  maxAmount: number;
  /** Undefined: every brand, unknown ones included (gaps §3). */
  acceptedBrands: readonly CardBrand[] | undefined;
  merchantReference: 'allow' | 'unique';
  rateLimit: RateLimit;
};

type StripeSettings = {
  secretKey: string;
  live: boolean;
  url: string;
  version: string;
  account: string | undefined;
  testTokens: boolean;
  /** Of each kind of operation; 0: no limit of our own. */
  perSecondMax: number;
  /** The secrets that sign webhooks, one or two; none: webhooks are not taken. */
  webhookSecrets: readonly string[];
};

/** All settings of a process, with defaults filled in. Names that end in Ms are milliseconds. */
export type Config = {
  /** Every setting with its origin, for operators; secrets are hidden. */
  effective: readonly EffectiveSetting[];
  mode: Mode;
  host: string;
  port: number;
  /** Absolute. A relative setting is resolved from the project's folder. */
  dataDir: string;
  logLevel: NonNullable<ParsedSettings['LOG_LEVEL']>;
  /** Undefined: SQLite in `dataDir`. May hold a password: never log it. */
  eventStoreDbUrl: string | undefined;
  /** Undefined: SQLite in `dataDir`. May hold a password: never log it. */
  mongoUrl: string | undefined;
  /** Undefined: nothing is published. Each broker is `host:port`. */
  kafka: ({ brokers: readonly string[]; topicPrefix: string } & KafkaSecurity) | undefined;
  tokens: {
    keys: TokenKeys;
    issuer: string | undefined;
    audience: string | undefined;
    /** The first of these claims that is present names the merchant. */
    merchantClaims: string[];
    /** Undefined: all that the kind of key allows. */
    algorithms: string[] | undefined;
  };
  provider: {
    kind: (typeof PROVIDERS)[number];
    /** With `http` alone. */
    url: string | undefined;
    token: string | undefined;
    /** Never above `timeoutMs`. */
    connectTimeoutMs: number;
    timeoutMs: number;
  };
  /** Undefined: another provider. Holds secrets: never log it. */
  stripe: StripeSettings | undefined;
  requestBudgetMs: number;
  recoveryDelaysMs: readonly number[];
  /** 0: the log is compared with the ledger only when somebody requests it. */
  reconcileIntervalMs: number;
  maxInFlight: number;
  /** Operations on one payment, its create included (gaps §18). */
  maxOperationsPerPayment: number;
  /** `keyFile` is absolute; undefined: in the data folder. A seal after so many events or so long. */
  seals: { keyFile: string | undefined; eventsMax: number; everyMs: number };
  /** Between two verifications of the whole log; 0: none but those that somebody starts. */
  verifyEveryMs: number;
  /** Per address, for requests without a valid token (gaps §11). */
  unauthenticatedRateLimit: RateLimit;
  /** Undefined: the secret in the data folder, made on first start (gaps §8). */
  idempotencySecret: string | undefined;
  /** An older secret whose hashes are still recognised (ADR-0105). */
  idempotencySecretPrevious: string | undefined;
  webhooks: {
    /** Undefined: the secret in the data folder, made on first start. */
    secret: string | undefined;
    /** Networks that messages may be sent to although they are not public, as `10.0.0.0/8`. */
    allowedNetworks: readonly string[];
  };
  /** The rules of a merchant that the merchants' file does not name. */
  rules: MerchantRules;
  merchants: ReadonlyMap<string, MerchantSettings>;
  /** One line each, for the banner. */
  warnings: readonly string[];
};

type ConfigResult = { ok: true; config: Config } | { ok: false; problems: string[] };

const RECONCILE_INTERVAL_MS_DEFAULT = 3_600_000;
const PROJECT_DIR = join(import.meta.dirname, '../..');
const PORTS: Record<Mode, number> = {
  embedded: 8080,
  'command-api': 8081,
  'query-api': 8082,
  projector: 8083,
  provider: 8090,
};

const isBlank = (value: string | undefined) => value === undefined || value.trim() === '';
const withoutBlanks = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => !isBlank(value)));

const dataDirOf = (parsed: ParsedSettings): string =>
  resolve(PROJECT_DIR, parsed.DATA_DIR ?? './data');

const isPublicKey = (key: unknown): key is Record<string, unknown> =>
  typeof key === 'object' && key !== null && 'kty' in key && !('d' in key) && !('k' in key);

const readKeys = (path: string): { keys: TokenKeys } | { problem: string } => {
  const read = readJsonFile(path);
  if ('problem' in read) return { problem: `JWT_JWKS_FILE ${read.problem}` };
  const keys = (read.value as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isPublicKey)) {
    return { problem: 'JWT_JWKS_FILE must name a JWK set of public keys' };
  }
  return { keys: { kind: 'jwks-file', path, jwks: { keys } } };
};

const keysOf = (parsed: ParsedSettings): { keys: TokenKeys } | { problem: string } => {
  if (parsed.JWT_SECRET !== undefined) {
    return { keys: { kind: 'secret', secret: parsed.JWT_SECRET } };
  }
  if (parsed.JWT_JWKS_URL !== undefined) {
    return { keys: { kind: 'jwks-url', url: parsed.JWT_JWKS_URL } };
  }
  if (parsed.JWT_JWKS_FILE === undefined) {
    return { keys: { kind: 'local', folder: dataDirOf(parsed) } };
  }
  return readKeys(resolve(PROJECT_DIR, parsed.JWT_JWKS_FILE));
};

const rateLimit = (perSecond = 0, burst = perSecond * 2): RateLimit => ({ perSecond, burst });

const saslOf = ({
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_SASL_USERNAME: username,
  KAFKA_SASL_PASSWORD: password,
}: ParsedSettings): KafkaSecurity['sasl'] =>
  mechanism === undefined || username === undefined || password === undefined
    ? undefined
    : { mechanism, username, password };

const STRIPE_PER_SECOND_DEFAULT = 25;

const stripeOf = (parsed: ParsedSettings): StripeSettings | undefined => {
  const { STRIPE_SECRET_KEY: secretKey } = parsed;
  if (providerKindOf(parsed) !== 'stripe' || secretKey === undefined) return undefined;
  const live = isLiveKey(secretKey);
  return {
    secretKey,
    live,
    url: parsed.STRIPE_API_URL ?? STRIPE_API_URL_DEFAULT,
    version: parsed.STRIPE_API_VERSION ?? STRIPE_API_VERSION_DEFAULT,
    account: parsed.STRIPE_ACCOUNT,
    testTokens: (parsed.STRIPE_TEST_TOKENS ?? String(!live)) === 'true',
    perSecondMax: parsed.STRIPE_CREATES_PER_SECOND ?? STRIPE_PER_SECOND_DEFAULT,
    webhookSecrets: parsed.STRIPE_WEBHOOK_SECRET ?? [],
  };
};

/** What was read from the files that settings name. */
type Files = {
  keys: TokenKeys;
  merchants: ReadonlyMap<string, MerchantSettings>;
  kafkaCa: string | undefined;
};

const configOf = (mode: Mode, parsed: ParsedSettings, files: Files): Config => {
  const { keys, merchants } = files;
  const { requestBudgetMs, ...providerTimes } = timesOf(parsed);
  const rates = ratesOf(mode);
  return {
    effective: [],
    mode,
    host: parsed.HOST ?? '127.0.0.1',
    port: parsed.PORT ?? PORTS[mode],
    dataDir: dataDirOf(parsed),
    logLevel: parsed.LOG_LEVEL ?? 'info',
    eventStoreDbUrl: parsed.EVENTSTOREDB_URL,
    mongoUrl: parsed.MONGODB_URL,
    kafka: parsed.KAFKA_BROKERS && {
      brokers: parsed.KAFKA_BROKERS,
      topicPrefix: parsed.KAFKA_TOPIC_PREFIX ?? TOPIC_PREFIX_DEFAULT,
      tls: parsed.KAFKA_TLS === 'true' ? { ca: files.kafkaCa } : undefined,
      sasl: saslOf(parsed),
    },
    tokens: {
      keys,
      issuer: parsed.JWT_ISSUER,
      audience: parsed.JWT_AUDIENCE,
      merchantClaims: parsed.JWT_MERCHANT_CLAIM ?? ['merchant_id', 'client_id', 'sub'],
      algorithms: parsed.JWT_ALGORITHMS,
    },
    provider: {
      kind: providerKindOf(parsed),
      url: parsed.PROVIDER_URL,
      token: parsed.PROVIDER_TOKEN,
      ...providerTimes,
    },
    stripe: stripeOf(parsed),
    requestBudgetMs,
    recoveryDelaysMs: parsed.RECOVERY_DELAYS_MS ?? RECOVERY_DELAYS_MS_DEFAULT,
    reconcileIntervalMs: parsed.RECONCILE_INTERVAL_MS ?? RECONCILE_INTERVAL_MS_DEFAULT,
    maxInFlight: parsed.MAX_IN_FLIGHT ?? 2048,
    seals: {
      keyFile:
        parsed.SEALING_KEY_FILE === undefined
          ? undefined
          : resolve(PROJECT_DIR, parsed.SEALING_KEY_FILE),
      eventsMax: parsed.SEAL_EVENTS_MAX ?? SEAL_EVENTS_MAX_DEFAULT,
      everyMs: parsed.SEAL_INTERVAL_MS ?? SEAL_INTERVAL_MS_DEFAULT,
    },
    verifyEveryMs: parsed.VERIFY_INTERVAL_MS ?? VERIFY_INTERVAL_MS_DEFAULT,
    maxOperationsPerPayment: parsed.MAX_OPERATIONS_PER_PAYMENT ?? MAX_OPERATIONS_DEFAULT,
    unauthenticatedRateLimit: rateLimit(
      parsed.RATE_LIMIT_UNAUTHENTICATED_PER_SECOND ?? rates.unauthenticated,
    ),
    idempotencySecret: parsed.IDEMPOTENCY_SECRET,
    idempotencySecretPrevious: parsed.IDEMPOTENCY_SECRET_PREVIOUS,
    webhooks: {
      secret: parsed.WEBHOOK_SECRET,
      allowedNetworks: parsed.WEBHOOK_ALLOWED_NETWORKS ?? [],
    },
    rules: {
      maxAmount: parsed.MAX_AMOUNT ?? MAX_AMOUNT_DEFAULT,
      acceptedBrands: parsed.ACCEPTED_BRANDS,
      merchantReference: parsed.MERCHANT_REFERENCE ?? 'allow',
      rateLimit: rateLimit(parsed.RATE_LIMIT_PER_SECOND ?? rates.merchant, parsed.RATE_LIMIT_BURST),
    },
    merchants,
    warnings: warningsOf(parsed),
  };
};

const deepFreeze = <T>(value: T): T => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
};

type Merchants = ReadonlyMap<string, MerchantSettings>;

const merchantsOf = (parsed: ParsedSettings): { merchants: Merchants; problems: string[] } => {
  if (parsed.MERCHANTS_FILE === undefined) return { merchants: new Map(), problems: [] };
  const { merchants, problems } = readMerchants(resolve(PROJECT_DIR, parsed.MERCHANTS_FILE));
  return { merchants, problems: problems.map((line) => `MERCHANTS_FILE ${line}`) };
};

const kafkaCaOf = (parsed: ParsedSettings): { kafkaCa: string | undefined; problems: string[] } => {
  if (parsed.KAFKA_CA_FILE === undefined) return { kafkaCa: undefined, problems: [] };
  const read = readText(resolve(PROJECT_DIR, parsed.KAFKA_CA_FILE));
  if ('problem' in read) return { kafkaCa: undefined, problems: [`KAFKA_CA_FILE ${read.problem}`] };
  const isPem = read.text.includes('-----BEGIN CERTIFICATE-----');
  return {
    kafkaCa: read.text,
    problems: isPem ? [] : ['KAFKA_CA_FILE must name a file with certificates in PEM'],
  };
};

const configFrom = (mode: Mode, parsed: ParsedSettings): ConfigResult => {
  const keys = keysOf(parsed);
  const { merchants, problems: merchantProblems } = merchantsOf(parsed);
  const { kafkaCa, problems: caProblems } = kafkaCaOf(parsed);
  const { EVENTSTOREDB_URL: url } = parsed;
  const addressProblems = url === undefined ? [] : eventStoreAddressProblems(url);
  const problems = [
    ...addressProblems.map((problem) => `EVENTSTOREDB_URL ${problem}`),
    ...providerProblems(parsed),
    ...stripeProblems(parsed),
    ...plaintextProblems(parsed),
    ...kafkaProblems(parsed),
    ...caProblems,
    ...tokenProblems(parsed),
    ...('problem' in keys ? [keys.problem] : []),
    ...rateProblems(mode, parsed),
    ...distributedProblems(mode, parsed),
    ...secretProblems(mode, parsed),
    ...merchantProblems,
  ];
  if (problems.length > 0 || 'problem' in keys) return { ok: false, problems };
  const files = { keys: keys.keys, merchants, kafkaCa };
  return { ok: true, config: deepFreeze(configOf(mode, parsed, files)) };
};

const parse = (env: NodeJS.ProcessEnv, mode: Mode): ConfigResult => {
  const read = settingsSchema.safeParse(env);
  if (read.success) return configFrom(mode, read.data);
  const problems = read.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`);
  // The valid settings are still checked against each other, so that one start lists every problem.
  const invalid = read.error.issues.map(({ path }) => String(path[0]));
  const valid = Object.entries(env).filter(([name]) => !invalid.includes(name));
  const rest = parse(Object.fromEntries(valid), mode);
  return { ok: false, problems: [...problems, ...furtherProblems(rest, invalid)] };
};

/** Without the invalid settings the rest may seem incomplete: such a line would be wrong. */
const furtherProblems = (rest: ConfigResult, invalid: readonly string[]): string[] =>
  rest.ok ? [] : rest.problems.filter((line) => !invalid.some((name) => line.includes(name)));

const withEffective = (read: ConfigResult, env: NodeJS.ProcessEnv): ConfigResult => {
  if (!read.ok) return read;
  const effective = effectiveSettings(env, read.config);
  return { ok: true, config: deepFreeze({ ...read.config, effective }) };
};

/**
 * Parses the environment for a mode. An empty text counts as unset; a secret may stand in the file
 * that `X_FILE` names. Never throws: each problem, an unreadable file included, is one line in
 * `problems` that names its setting.
 */
export const loadConfig = (env: NodeJS.ProcessEnv, mode: Mode = 'embedded'): ConfigResult => {
  const given = withSecretFiles(withoutBlanks(env), SECRET_SETTINGS, PROJECT_DIR);
  const read = parse(given.env, mode);
  if (given.failed.length === 0) return withEffective(read, env);
  return { ok: false, problems: [...given.problems, ...furtherProblems(read, given.failed)] };
};

/** The rules of a merchant. With a rate of its own and no burst, its burst is twice that rate. */
export const merchantRules = (config: Config, merchantId: string): MerchantRules => {
  const own = config.merchants.get(merchantId);
  if (own === undefined) return config.rules;
  const { maxAmount, acceptedBrands, merchantReference } = config.rules;
  const general = config.rules.rateLimit;
  return {
    maxAmount: own.maxAmount ?? maxAmount,
    acceptedBrands: own.acceptedBrands ?? acceptedBrands,
    merchantReference: own.merchantReference ?? merchantReference,
    rateLimit:
      own.rateLimitPerSecond === undefined
        ? rateLimit(general.perSecond, own.rateLimitBurst ?? general.burst)
        : rateLimit(own.rateLimitPerSecond, own.rateLimitBurst),
  };
};

/** The idempotency secrets, the current one first: `own` where the settings name none (gaps §8). */
export const secretsOf = (
  { idempotencySecret, idempotencySecretPrevious: previous }: Config,
  own = '',
): [current: string, ...previous: string[]] => [
  idempotencySecret ?? own,
  ...(previous === undefined ? [] : [previous]),
];
