/**
 * The environment, parsed once (docs/settings.md). With any wrong setting the process does not
 * start: every problem is listed, each line names its setting, and none repeats a value that may be
 * a secret.
 */
import { join, resolve } from 'node:path';
import type { CardBrand } from '../payment/card.ts';
import { LOCAL_KEY_ALGORITHM, PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHM } from './key-algorithms.ts';
import { type MerchantSettings, readJsonFile, readMerchants } from './merchants.ts';
import {
  MAX_AMOUNT_DEFAULT,
  type ParsedSettings,
  RECOVERY_DELAYS_MS_DEFAULT,
  settingsSchema,
  TOPIC_PREFIX_DEFAULT,
} from './settings.ts';

/**
 * `embedded`: everything in one process. `provider`: the simulated provider in a process of its own.
 * The others are the three processes of docs/several-processes.md; each may run more than once.
 */
export type Mode = 'embedded' | 'provider' | DistributedMode;
type DistributedMode = 'command-api' | 'query-api' | 'projector';

/** The source of the keys that verify tokens (gaps §10). */
type TokenKeys =
  | { kind: 'secret'; secret: string }
  | { kind: 'jwks-url'; url: string }
  | { kind: 'jwks-file'; path: string; jwks: { keys: Record<string, unknown>[] } }
  /** The ES256 key pair in the data folder, made on first use. */
  | { kind: 'local'; folder: string };

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

export type Config = {
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
  kafka: { brokers: readonly string[]; topicPrefix: string } | undefined;
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
    /** Undefined: the simulator in this process. */
    url: string | undefined;
    token: string | undefined;
    /** Never above `timeoutMs`. */
    connectTimeoutMs: number;
    timeoutMs: number;
  };
  requestBudgetMs: number;
  recoveryDelaysMs: readonly number[];
  maxInFlight: number;
  /** Per address, for requests without a valid token (gaps §11). */
  unauthenticatedRateLimit: RateLimit;
  /** Undefined: the secret in the data folder, made on first start (gaps §8). */
  idempotencySecret: string | undefined;
  /** The rules of a merchant that the merchants' file does not name. */
  rules: MerchantRules;
  merchants: ReadonlyMap<string, MerchantSettings>;
  /** One line each, for the banner. */
  warnings: readonly string[];
};

type ConfigResult = { ok: true; config: Config } | { ok: false; problems: string[] };

const PROJECT_DIR = join(import.meta.dirname, '../..');
const PORTS: Record<Mode, number> = {
  embedded: 8080,
  'command-api': 8081,
  'query-api': 8082,
  projector: 8083,
  provider: 8090,
};
const isDistributed = (mode: Mode): mode is DistributedMode =>
  mode !== 'embedded' && mode !== 'provider';
const SECRET_BYTES_MIN = 32;

const isBlank = (value: string | undefined) => value === undefined || value.trim() === '';
const withoutBlanks = (env: NodeJS.ProcessEnv) =>
  Object.fromEntries(Object.entries(env).filter(([, value]) => !isBlank(value)));

const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;
/** True when the address is https, or its host is this machine (docs/provider.md). */
const isEncryptedOrLocal = (url: string): boolean => {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || LOOPBACK.test(hostname);
};

const timesOf = (parsed: ParsedSettings) => {
  const timeoutMs = parsed.PROVIDER_TIMEOUT_MS ?? 5_000;
  const connectTimeoutMs = Math.min(parsed.PROVIDER_CONNECT_TIMEOUT_MS ?? 1_000, timeoutMs);
  return { timeoutMs, connectTimeoutMs, requestBudgetMs: parsed.REQUEST_BUDGET_MS ?? 10_000 };
};

const providerProblems = (parsed: ParsedSettings): string[] => {
  const { timeoutMs, requestBudgetMs } = timesOf(parsed);
  const problems = [];
  if (timeoutMs > requestBudgetMs) {
    problems.push(
      `PROVIDER_TIMEOUT_MS (${timeoutMs}) must not be above REQUEST_BUDGET_MS (${requestBudgetMs})`,
    );
  }
  const url = parsed.PROVIDER_URL;
  if (url !== undefined && !isEncryptedOrLocal(url) && parsed.PROVIDER_ALLOW_HTTP !== 'true') {
    problems.push('PROVIDER_URL must be https (or set PROVIDER_ALLOW_HTTP=true)');
  }
  return problems;
};

const dataDirOf = (parsed: ParsedSettings): string =>
  resolve(PROJECT_DIR, parsed.DATA_DIR ?? './data');

const KEY_SOURCES = ['JWT_SECRET', 'JWT_JWKS_URL', 'JWT_JWKS_FILE'] as const;

const algorithmsAllowed = (parsed: ParsedSettings): string[] => {
  if (parsed.JWT_SECRET !== undefined) return [SECRET_ALGORITHM];
  const hasPublicKeys = parsed.JWT_JWKS_URL !== undefined || parsed.JWT_JWKS_FILE !== undefined;
  return hasPublicKeys ? PUBLIC_KEY_ALGORITHMS : [LOCAL_KEY_ALGORITHM];
};

const tokenProblems = (parsed: ParsedSettings): string[] => {
  const problems = [];
  const sources = KEY_SOURCES.filter((name) => parsed[name] !== undefined);
  if (sources.length > 1) problems.push(`${sources.join(', ')} must not be set together`);
  const allowed = algorithmsAllowed(parsed);
  // A public key must never serve as an HMAC secret, so the lists do not mix.
  if (sources.length <= 1 && parsed.JWT_ALGORITHMS?.some((name) => !allowed.includes(name))) {
    problems.push(`JWT_ALGORITHMS must be of ${allowed.join(', ')} with these keys`);
  }
  if (parsed.JWT_JWKS_URL !== undefined) {
    for (const name of ['JWT_ISSUER', 'JWT_AUDIENCE'] as const) {
      if (parsed[name] === undefined) problems.push(`${name} must be set with JWT_JWKS_URL`);
    }
  }
  return problems;
};

/** The default rates: on for the several processes, off for one on its own (gaps §11). */
const ratesOf = (mode: Mode) =>
  isDistributed(mode)
    ? { merchant: 1_000, unauthenticated: 50 }
    : { merchant: 0, unauthenticated: 0 };

const rateProblems = (mode: Mode, parsed: ParsedSettings): string[] =>
  parsed.RATE_LIMIT_BURST === 0 && (parsed.RATE_LIMIT_PER_SECOND ?? ratesOf(mode).merchant) > 0
    ? ['RATE_LIMIT_BURST must be at least 1 when RATE_LIMIT_PER_SECOND is set']
    : [];

/** Settings that the embedded mode has defaults for, and each of several processes must be given. */
const distributedProblems = (mode: Mode, parsed: ParsedSettings): string[] => {
  if (!isDistributed(mode)) return [];
  const problems = [];
  const needed = ['EVENTSTOREDB_URL', 'MONGODB_URL'] as const;
  for (const name of needed) {
    if (parsed[name] === undefined) problems.push(`${name} must be set for the ${mode}`);
  }
  if (mode === 'command-api' && parsed.PROVIDER_URL === undefined) {
    problems.push(
      'PROVIDER_URL must be set for the command-api; npm run start:provider serves the simulated one',
    );
  }
  if (KEY_SOURCES.every((name) => parsed[name] === undefined)) {
    problems.push(`one of ${KEY_SOURCES.join(', ')} must be set for the ${mode}`);
  }
  if (Buffer.byteLength(parsed.JWT_SECRET ?? 'x'.repeat(SECRET_BYTES_MIN)) < SECRET_BYTES_MIN) {
    problems.push(`JWT_SECRET must be at least ${SECRET_BYTES_MIN} bytes for the ${mode}`);
  }
  return problems;
};

/**
 * With a secret of its own, a process would not recognise a key that another process has seen, and
 * would charge a repeated request again (gaps §8).
 */
const secretProblems = (mode: Mode, parsed: ParsedSettings): string[] => {
  const shared = parsed.EVENTSTOREDB_URL !== undefined || isDistributed(mode);
  return mode !== 'provider' && shared && parsed.IDEMPOTENCY_SECRET === undefined
    ? ['IDEMPOTENCY_SECRET must be set with EventStoreDB, to the same value in every process']
    : [];
};

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

const warningsOf = (parsed: ParsedSettings): string[] => {
  const warnings: string[] = [];
  for (const name of ['JWT_SECRET', 'IDEMPOTENCY_SECRET'] as const) {
    const bytes = Buffer.byteLength(parsed[name] ?? '');
    if (bytes > 0 && bytes < SECRET_BYTES_MIN) {
      warnings.push(`${name} is shorter than ${SECRET_BYTES_MIN} bytes`);
    }
  }
  if (parsed.JWT_JWKS_FILE !== undefined) {
    for (const name of ['JWT_ISSUER', 'JWT_AUDIENCE'] as const) {
      if (parsed[name] === undefined) warnings.push(`${name} is not set, so it is not checked`);
    }
  }
  if (parsed.JWT_JWKS_URL !== undefined && !isEncryptedOrLocal(parsed.JWT_JWKS_URL)) {
    warnings.push('JWT_JWKS_URL is plain http: anyone on the network path can replace the keys');
  }
  return warnings;
};

const rateLimit = (perSecond = 0, burst = perSecond * 2): RateLimit => ({ perSecond, burst });

const configOf = (
  mode: Mode,
  parsed: ParsedSettings,
  keys: TokenKeys,
  merchants: ReadonlyMap<string, MerchantSettings>,
): Config => {
  const { requestBudgetMs, ...providerTimes } = timesOf(parsed);
  const rates = ratesOf(mode);
  return {
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
    },
    tokens: {
      keys,
      issuer: parsed.JWT_ISSUER,
      audience: parsed.JWT_AUDIENCE,
      merchantClaims: parsed.JWT_MERCHANT_CLAIM ?? ['merchant_id', 'client_id', 'sub'],
      algorithms: parsed.JWT_ALGORITHMS,
    },
    provider: { url: parsed.PROVIDER_URL, token: parsed.PROVIDER_TOKEN, ...providerTimes },
    requestBudgetMs,
    recoveryDelaysMs: parsed.RECOVERY_DELAYS_MS ?? RECOVERY_DELAYS_MS_DEFAULT,
    maxInFlight: parsed.MAX_IN_FLIGHT ?? 2048,
    unauthenticatedRateLimit: rateLimit(
      parsed.RATE_LIMIT_UNAUTHENTICATED_PER_SECOND ?? rates.unauthenticated,
    ),
    idempotencySecret: parsed.IDEMPOTENCY_SECRET,
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

const configFrom = (mode: Mode, parsed: ParsedSettings): ConfigResult => {
  const keys = keysOf(parsed);
  const { merchants, problems: merchantProblems } = merchantsOf(parsed);
  const problems = [
    ...providerProblems(parsed),
    ...tokenProblems(parsed),
    ...('problem' in keys ? [keys.problem] : []),
    ...rateProblems(mode, parsed),
    ...distributedProblems(mode, parsed),
    ...secretProblems(mode, parsed),
    ...merchantProblems,
  ];
  if (problems.length > 0 || 'problem' in keys) return { ok: false, problems };
  return { ok: true, config: deepFreeze(configOf(mode, parsed, keys.keys, merchants)) };
};

/**
 * Parses the environment for a mode. An empty text counts as unset. Never throws: each problem, an
 * unreadable file included, is one line in `problems` that names its setting.
 */
export const loadConfig = (env: NodeJS.ProcessEnv, mode: Mode = 'embedded'): ConfigResult => {
  const read = settingsSchema.safeParse(withoutBlanks(env));
  if (read.success) return configFrom(mode, read.data);
  const problems = read.error.issues.map(({ path, message }) => `${String(path[0])} ${message}`);
  // The valid settings are still checked against each other, so that one start lists every problem.
  const invalid = read.error.issues.map(({ path }) => String(path[0]));
  const valid = Object.entries(env).filter(([name]) => !invalid.includes(name));
  const rest = loadConfig(Object.fromEntries(valid), mode);
  const further = rest.ok ? [] : rest.problems;
  // Without the invalid settings the rest may seem incomplete: such a line would be wrong.
  const isNew = (line: string) => !invalid.some((name) => line.includes(name));
  return { ok: false, problems: [...problems, ...further.filter(isNew)] };
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
