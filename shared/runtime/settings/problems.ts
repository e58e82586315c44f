/**
 * Rules over several settings, and over the mode of the process. Each function returns its problems,
 * one line each that names a setting; load-config.ts reports them with all others.
 */
import type { DistributedMode, Mode } from '../config.ts';
import { LOCAL_KEY_ALGORITHM, PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHM } from '../key-algorithms.ts';
import { providerNameAt } from './provider-name.ts';
import { type ParsedSettings, PLAINTEXT_ENGINES } from './table.ts';

const SECRET_BYTES_MIN = 32;
const isShort = (secret: string | undefined): boolean =>
  secret !== undefined && Buffer.byteLength(secret) < SECRET_BYTES_MIN;

const isDistributed = (mode: Mode): mode is DistributedMode =>
  mode !== 'embedded' && mode !== 'provider';

const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;
/** True when the address is https, or its host is this machine (docs/provider.md). */
const isEncryptedOrLocal = (url: string): boolean => {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || LOOPBACK.test(hostname);
};

/** Who carries out payments, as the settings say. */
export const providerKindOf = ({ PROVIDER, PROVIDER_URL }: ParsedSettings) =>
  PROVIDER ?? (PROVIDER_URL === undefined ? 'simulator' : 'http');

/**
 * The names of the provider that the settings name, the one that events get first (ADR-0247). Another
 * address is another provider unless `PROVIDER_SAME_AS` says that it is the same.
 */
export const providerNamesOf = (parsed: ParsedSettings): [name: string, ...sameAs: string[]] => {
  const { PROVIDER_URL: address, PROVIDER_SAME_AS: sameAs = [] } = parsed;
  return [address === undefined ? providerKindOf(parsed) : providerNameAt(address), ...sameAs];
};

/** A call to Stripe is two round trips, the second one to the issuer. */
const TIMES_MS = {
  others: { timeout: 5_000, budget: 10_000 },
  stripe: { timeout: 25_000, budget: 30_000 },
};

/** Time limits in milliseconds, defaults filled in. A connection never takes longer than a call. */
export const timesOf = (parsed: ParsedSettings) => {
  const defaults = TIMES_MS[providerKindOf(parsed) === 'stripe' ? 'stripe' : 'others'];
  const timeoutMs = parsed.PROVIDER_TIMEOUT_MS ?? defaults.timeout;
  const connectTimeoutMs = Math.min(parsed.PROVIDER_CONNECT_TIMEOUT_MS ?? 1_000, timeoutMs);
  return {
    timeoutMs,
    connectTimeoutMs,
    requestBudgetMs: parsed.REQUEST_BUDGET_MS ?? defaults.budget,
  };
};

/** The timeout must fit the request budget, and card numbers must not travel in the clear. */
export const providerProblems = (parsed: ParsedSettings): string[] => {
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
  if (parsed.PROVIDER === 'http' && url === undefined) {
    problems.push('PROVIDER_URL must be set with PROVIDER=http');
  }
  if (parsed.PROVIDER !== undefined && parsed.PROVIDER !== 'http' && url !== undefined) {
    problems.push(`PROVIDER_URL must not be set with PROVIDER=${parsed.PROVIDER}`);
  }
  return problems;
};

/** A key of Stripe that moves money, as opposed to one of its test mode. */
export const isLiveKey = (key: string): boolean => /^(sk|rk)_live_/.test(key);

/** With PROVIDER=stripe there is a key, and one that moves money only where that is said too. */
export const stripeProblems = (parsed: ParsedSettings): string[] => {
  if (providerKindOf(parsed) !== 'stripe') return [];
  const { STRIPE_SECRET_KEY: key, STRIPE_API_URL: url } = parsed;
  const problems = [];
  if (key === undefined) problems.push('STRIPE_SECRET_KEY must be set with PROVIDER=stripe');
  const isLive = key !== undefined && isLiveKey(key);
  if (isLive && parsed.STRIPE_LIVE !== 'true') {
    problems.push('STRIPE_SECRET_KEY is a live key: money would move (set STRIPE_LIVE=true)');
  }
  if (isLive && parsed.STRIPE_TEST_TOKENS === 'true') {
    problems.push('STRIPE_TEST_TOKENS must not be true with a live key');
  }
  if (url !== undefined && !isEncryptedOrLocal(url)) problems.push('STRIPE_API_URL must be https');
  return problems;
};

/** The hosts of an address, which may name several; none where they stand in DNS records. */
const hostsOf = (url: string): string[] => {
  const hosts = url.replace(/^[a-z+]+:\/\/(?:[^/?#]*@)?/i, '').split(/[/?#]/)[0] ?? '';
  return hosts.split(',').map((host) => host.replace(/:\d+$/, ''));
};
// A path in place of a host is a socket file of this machine.
const isLocal = (host: string): boolean => LOOPBACK.test(host) || host.startsWith('%2F');
const isElsewhere = (hosts: readonly string[]): boolean => !hosts.every(isLocal);
const parameterOf = (url: string, ...names: string[]): string | undefined => {
  const parameters = new URLSearchParams(url.split('?')[1]);
  const [, value] = [...parameters].find(([name]) => names.includes(name.toLowerCase())) ?? [];
  return value?.toLowerCase();
};

/** Each engine's setting, how to use TLS there, and whether an address of it goes without. */
const PLAINTEXT_RULES: Record<
  (typeof PLAINTEXT_ENGINES)[number],
  { setting: string; withTls: string; isPlain(parsed: ParsedSettings): boolean }
> = {
  eventstoredb: {
    setting: 'EVENTSTOREDB_URL',
    withTls: 'leave out tls=false',
    isPlain: ({ EVENTSTOREDB_URL: url }) =>
      url !== undefined && parameterOf(url, 'tls') === 'false' && isElsewhere(hostsOf(url)),
  },
  mongodb: {
    setting: 'MONGODB_URL',
    withTls: 'add tls=true',
    isPlain: ({ MONGODB_URL: url }) => {
      if (url === undefined || !isElsewhere(hostsOf(url))) return false;
      const tls = parameterOf(url, 'tls', 'ssl');
      return /^mongodb\+srv:/i.test(url) ? tls === 'false' : tls !== 'true';
    },
  },
  kafka: {
    setting: 'KAFKA_BROKERS',
    withTls: 'set KAFKA_TLS=true',
    isPlain: ({ KAFKA_BROKERS: brokers = [], KAFKA_TLS: tls }) =>
      tls !== 'true' && isElsewhere(brokers.map((broker) => broker.replace(/:\d+$/, ''))),
  },
  jwks: {
    setting: 'JWT_JWKS_URL',
    withTls: 'use https',
    isPlain: ({ JWT_JWKS_URL: url }) => url !== undefined && !isEncryptedOrLocal(url),
  },
};

/** What travels in plain text to another host can be read and changed on its way. */
export const plaintextProblems = (parsed: ParsedSettings): string[] =>
  PLAINTEXT_ENGINES.filter(
    (engine) =>
      PLAINTEXT_RULES[engine].isPlain(parsed) && !parsed.PLAINTEXT_ALLOWED?.includes(engine),
  ).map((engine) => {
    const { setting, withTls } = PLAINTEXT_RULES[engine];
    return `${setting} must use TLS on a host other than loopback: ${withTls}, or set PLAINTEXT_ALLOWED=${engine}`;
  });

/** Kafka's login is whole or absent, and its authorities are of use with TLS alone. */
export const kafkaProblems = (parsed: ParsedSettings): string[] => {
  const login = ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const;
  const missing = login.filter((name) => parsed[name] === undefined);
  const problems = [];
  if (missing.length > 0 && missing.length < login.length) {
    problems.push(`${missing.join(', ')} must be set with the other settings of Kafka's login`);
  }
  if (parsed.KAFKA_CA_FILE !== undefined && parsed.KAFKA_TLS !== 'true') {
    problems.push('KAFKA_TLS must be true with KAFKA_CA_FILE');
  }
  return problems;
};

const KEY_SOURCES = ['JWT_SECRET', 'JWT_JWKS_URL', 'JWT_JWKS_FILE'] as const;

const algorithmsAllowed = (parsed: ParsedSettings): string[] => {
  if (parsed.JWT_SECRET !== undefined) return [SECRET_ALGORITHM];
  const hasPublicKeys = parsed.JWT_JWKS_URL !== undefined || parsed.JWT_JWKS_FILE !== undefined;
  return hasPublicKeys ? PUBLIC_KEY_ALGORITHMS : [LOCAL_KEY_ALGORITHM];
};

/** One source of keys, algorithms that fit it, and issuer and audience where the source is a URL. */
export const tokenProblems = (parsed: ParsedSettings): string[] => {
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
export const ratesOf = (mode: Mode) =>
  isDistributed(mode)
    ? { merchant: 1_000, unauthenticated: 50 }
    : { merchant: 0, unauthenticated: 0 };

/** A rate with a burst of 0 would let no request through. */
export const rateProblems = (mode: Mode, parsed: ParsedSettings): string[] =>
  parsed.RATE_LIMIT_BURST === 0 && (parsed.RATE_LIMIT_PER_SECOND ?? ratesOf(mode).merchant) > 0
    ? ['RATE_LIMIT_BURST must be at least 1 when RATE_LIMIT_PER_SECOND is set']
    : [];

/** Settings that the embedded mode has defaults for, and each of several processes must be given. */
export const distributedProblems = (mode: Mode, parsed: ParsedSettings): string[] => {
  if (!isDistributed(mode)) return [];
  const problems = [];
  const needed = ['EVENTSTOREDB_URL', 'MONGODB_URL'] as const;
  for (const name of needed) {
    if (parsed[name] === undefined) problems.push(`${name} must be set for the ${mode}`);
  }
  if (mode === 'command-api' && providerKindOf(parsed) === 'simulator') {
    problems.push(
      'PROVIDER_URL must be set for the command-api; npm run start:provider serves the simulated one',
    );
  }
  if (KEY_SOURCES.every((name) => parsed[name] === undefined)) {
    problems.push(`one of ${KEY_SOURCES.join(', ')} must be set for the ${mode}`);
  }
  if (isShort(parsed.JWT_SECRET)) {
    problems.push(`JWT_SECRET must be at least ${SECRET_BYTES_MIN} bytes for the ${mode}`);
  }
  return problems;
};

/**
 * With a secret of its own, a process would not recognise a key that another process has seen, and
 * would charge a repeated request again (gaps §8); and it would sign webhooks by other keys than
 * merchants were shown.
 */
export const secretProblems = (mode: Mode, parsed: ParsedSettings): string[] => {
  const problems = (
    ['IDEMPOTENCY_SECRET', 'IDEMPOTENCY_SECRET_PREVIOUS', 'WEBHOOK_SECRET'] as const
  )
    .filter((name) => isShort(parsed[name]))
    .map((name) => `${name} must be at least ${SECRET_BYTES_MIN} bytes`);
  const isShared = parsed.EVENTSTOREDB_URL !== undefined || isDistributed(mode);
  if (mode === 'provider' || !isShared) return problems;
  const missing = (['IDEMPOTENCY_SECRET', 'WEBHOOK_SECRET'] as const)
    .filter((name) => parsed[name] === undefined)
    .map((name) => `${name} must be set with EventStoreDB, to the same value in every process`);
  return [...problems, ...missing];
};

/** Settings that work but are unsafe or incomplete, one line each. */
export const warningsOf = (parsed: ParsedSettings): string[] => {
  const warnings: string[] = [];
  if (isShort(parsed.JWT_SECRET)) {
    warnings.push(`JWT_SECRET is shorter than ${SECRET_BYTES_MIN} bytes`);
  }
  if (parsed.JWT_JWKS_FILE !== undefined) {
    for (const name of ['JWT_ISSUER', 'JWT_AUDIENCE'] as const) {
      if (parsed[name] === undefined) warnings.push(`${name} is not set, so it is not checked`);
    }
  }
  if (parsed.JWT_JWKS_URL !== undefined && parsed.JWT_MERCHANT_CLAIM === undefined) {
    warnings.push(
      'JWT_MERCHANT_CLAIM is not set, so the merchant is guessed: the first of merchant_id, client_id and sub in a token; name the claim of your issuer',
    );
  }
  return warnings;
};
