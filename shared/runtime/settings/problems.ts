import { eventStoreAddressProblems } from './event-store-address.ts';
import {
  isDistributed,
  isLiveKey,
  LOCAL_KEY_ALGORITHM,
  type Mode,
  type ParsedSettings,
  type PLAINTEXT_ENGINES,
  PUBLIC_KEY_ALGORITHMS,
  SECRET_ALGORITHM,
  SECRET_SETTINGS,
  SETTING_NAMES,
} from './table.ts';

/** A problem, and whether there is one. */
type Rules = Readonly<Record<string, boolean>>;

const problemsOf = (rules: Rules): string[] =>
  Object.keys(rules).filter((problem) => rules[problem]);

const SECRET_BYTES_MIN = 32;
const isShort = (secret: string | undefined): boolean =>
  secret !== undefined && Buffer.byteLength(secret) < SECRET_BYTES_MIN;

const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;
/** Plain http to another machine (docs/provider.md). */
const isPlainHttp = (url: string | undefined): boolean => {
  if (url === undefined) return false;
  const { protocol, hostname } = new URL(url);
  return protocol !== 'https:' && !LOOPBACK.test(hostname);
};

/** Card numbers must not travel in the clear. */
const providerRules = (parsed: ParsedSettings): Rules => {
  const { PROVIDER: provider, PROVIDER_URL: url, PROVIDER_ALLOW_HTTP: allowsHttp } = parsed;
  const { PROVIDER_TIMEOUT_MS: timeoutMs, REQUEST_BUDGET_MS: budgetMs } = parsed;
  return {
    [`PROVIDER_TIMEOUT_MS (${timeoutMs}) must not be above REQUEST_BUDGET_MS (${budgetMs})`]:
      timeoutMs > budgetMs,
    'PROVIDER_URL must be https (or set PROVIDER_ALLOW_HTTP=true)': isPlainHttp(url) && !allowsHttp,
    'PROVIDER_URL must be set with PROVIDER=http': provider === 'http' && url === undefined,
    [`PROVIDER_URL must not be set with PROVIDER=${provider}`]:
      provider !== 'http' && url !== undefined,
  };
};

const stripeRules = (parsed: ParsedSettings): Rules => {
  const { STRIPE_SECRET_KEY: key } = parsed;
  if (parsed.PROVIDER !== 'stripe')
    return { 'STRIPE_SECRET_KEY must not be set without PROVIDER=stripe': key !== undefined };
  const isLive = key !== undefined && isLiveKey(key);
  return {
    'STRIPE_SECRET_KEY must be set with PROVIDER=stripe': key === undefined,
    'STRIPE_SECRET_KEY is a live key: money would move (set STRIPE_LIVE=true)':
      isLive && !parsed.STRIPE_LIVE,
    'STRIPE_TEST_TOKENS must not be true with a live key':
      isLive && parsed.STRIPE_TEST_TOKENS === true,
    // Earlier versions list what a capture of part released as a refund of what was never taken.
    'STRIPE_API_VERSION must not be before 2025-03-31': parsed.STRIPE_API_VERSION < '2025-03-31',
    'STRIPE_API_URL must be https': isPlainHttp(parsed.STRIPE_API_URL),
  };
};

/** `%2F` begins the path of a socket file. */
const isElsewhere = (hosts: readonly string[]): boolean =>
  !hosts
    .map((host) => host.replace(/:\d+$/, ''))
    .every((host) => LOOPBACK.test(host) || host.startsWith('%2F'));

export const hostsOf = (url: string): string[] =>
  (url.replace(/^[a-z+]+:\/\/(?:[^/?#]*@)?/i, '').split(/[/?#]/)[0] ?? '').split(',');

const parameterOf = (url: string, ...names: string[]): string | undefined => {
  const parameters = new URLSearchParams(url.split('?')[1]);
  const [, value] = [...parameters].find(([name]) => names.includes(name.toLowerCase())) ?? [];
  return value?.toLowerCase();
};

const isMongoPlain = (url: string): boolean => {
  const tls = parameterOf(url, 'tls', 'ssl');
  return (
    isElsewhere(hostsOf(url)) && (/^mongodb\+srv:/i.test(url) ? tls === 'false' : tls !== 'true')
  );
};

/** Plain text can be read and changed on its way. */
const plaintextRules = (parsed: ParsedSettings): Rules => {
  const { EVENTSTOREDB_URL: esdb, MONGODB_URL: mongo, KAFKA_BROKERS: brokers = [] } = parsed;
  const rule = (
    engine: (typeof PLAINTEXT_ENGINES)[number],
    isPlain: boolean,
    [setting, withTls]: readonly [string, string],
  ): Rules => ({
    [`${setting} must use TLS on a host other than loopback: ${withTls}, or set PLAINTEXT_ALLOWED=${engine}`]:
      isPlain && parsed.PLAINTEXT_ALLOWED?.includes(engine) !== true,
  });
  const isEventStorePlain =
    esdb !== undefined && parameterOf(esdb, 'tls') === 'false' && isElsewhere(hostsOf(esdb));
  const isKafkaPlain = !parsed.KAFKA_TLS && isElsewhere(brokers);
  return {
    ...rule('eventstoredb', isEventStorePlain, ['EVENTSTOREDB_URL', 'leave out tls=false']),
    ...rule('mongodb', mongo !== undefined && isMongoPlain(mongo), ['MONGODB_URL', 'add tls=true']),
    ...rule('kafka', isKafkaPlain, ['KAFKA_BROKERS', 'set KAFKA_TLS=true']),
    ...rule('jwks', isPlainHttp(parsed.JWT_JWKS_URL), ['JWT_JWKS_URL', 'use https']),
  };
};

const KAFKA_LOGIN = ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const;

const kafkaRules = (parsed: ParsedSettings): Rules => {
  const missing = KAFKA_LOGIN.filter((name) => parsed[name] === undefined);
  return {
    [`${missing.join(', ')} must be set with the other settings of Kafka's login`]:
      missing.length > 0 && missing.length < KAFKA_LOGIN.length,
    'KAFKA_TLS must be true with KAFKA_CA_FILE':
      parsed.KAFKA_CA_FILE !== undefined && !parsed.KAFKA_TLS,
  };
};

export const engineProblems = (parsed: ParsedSettings): string[] => {
  const { EVENTSTOREDB_URL: url } = parsed;
  const addressProblems = url === undefined ? [] : eventStoreAddressProblems(url);
  return [
    ...addressProblems.map((problem) => `EVENTSTOREDB_URL ${problem}`),
    ...problemsOf({
      ...providerRules(parsed),
      ...stripeRules(parsed),
      ...plaintextRules(parsed),
      ...kafkaRules(parsed),
    }),
  ];
};

const KEY_SOURCES = ['JWT_SECRET', 'JWT_JWKS_URL', 'JWT_JWKS_FILE'] as const;

const algorithmsAllowed = (parsed: ParsedSettings): string[] => {
  if (parsed.JWT_SECRET !== undefined) return [SECRET_ALGORITHM];
  const hasPublicKeys = parsed.JWT_JWKS_URL !== undefined || parsed.JWT_JWKS_FILE !== undefined;
  return hasPublicKeys ? PUBLIC_KEY_ALGORITHMS : [LOCAL_KEY_ALGORITHM];
};

export const tokenProblems = (parsed: ParsedSettings): string[] => {
  const sources = KEY_SOURCES.filter((name) => parsed[name] !== undefined);
  const allowed = algorithmsAllowed(parsed);
  // A public key must never serve as an HMAC secret.
  const hasForeign = parsed.JWT_ALGORITHMS?.some((name) => !allowed.includes(name)) === true;
  const isByUrl = parsed.JWT_JWKS_URL !== undefined;
  return problemsOf({
    [`${sources.join(', ')} must not be set together`]: sources.length > 1,
    [`JWT_ALGORITHMS must be of ${allowed.join(', ')} with these keys`]:
      sources.length <= 1 && hasForeign,
    'JWT_ISSUER must be set with JWT_JWKS_URL': isByUrl && parsed.JWT_ISSUER === undefined,
    'JWT_AUDIENCE must be set with JWT_JWKS_URL': isByUrl && parsed.JWT_AUDIENCE === undefined,
  });
};

/** The embedded mode has defaults for these; several processes must be given each. */
const distributedRules = (mode: Mode, parsed: ParsedSettings): Rules => {
  if (!isDistributed(mode)) return {};
  return {
    [`EVENTSTOREDB_URL must be set for the ${mode}`]: parsed.EVENTSTOREDB_URL === undefined,
    [`MONGODB_URL must be set for the ${mode}`]: parsed.MONGODB_URL === undefined,
    'PROVIDER_URL must be set for the command-api; npm run start:provider serves the simulated one':
      mode === 'command-api' && parsed.PROVIDER === 'simulator',
    [`one of ${KEY_SOURCES.join(', ')} must be set for the ${mode}`]: KEY_SOURCES.every(
      (name) => parsed[name] === undefined,
    ),
    [`JWT_SECRET must be at least ${SECRET_BYTES_MIN} bytes for the ${mode}`]: isShort(
      parsed.JWT_SECRET,
    ),
  };
};

/** Another secret would charge repeats again (gaps §8), and sign webhooks by other keys. */
const secretRules = (mode: Mode, parsed: ParsedSettings): Rules => {
  const isShared = parsed.EVENTSTOREDB_URL !== undefined || isDistributed(mode);
  const needsSecrets = mode !== 'provider' && isShared;
  const own = ['IDEMPOTENCY_SECRET', 'WEBHOOK_SECRET'] as const;
  const all = ['IDEMPOTENCY_SECRET', 'IDEMPOTENCY_SECRET_PREVIOUS', 'WEBHOOK_SECRET'] as const;
  return Object.fromEntries([
    ...all.map((name) => [
      `${name} must be at least ${SECRET_BYTES_MIN} bytes`,
      isShort(parsed[name]),
    ]),
    ...own.map((name) => [
      `${name} must be set with EventStoreDB, to the same value in every process`,
      needsSecrets && parsed[name] === undefined,
    ]),
  ]);
};

export const modeProblems = (mode: Mode, parsed: ParsedSettings): string[] =>
  problemsOf({
    'RATE_LIMIT_BURST must be at least 1 when RATE_LIMIT_PER_SECOND is set':
      parsed.RATE_LIMIT_BURST === 0 && parsed.RATE_LIMIT_PER_SECOND > 0,
    ...distributedRules(mode, parsed),
    ...secretRules(mode, parsed),
  });

export const warningsOf = (parsed: ParsedSettings): string[] => {
  const isByFile = parsed.JWT_JWKS_FILE !== undefined;
  return problemsOf({
    [`JWT_SECRET is shorter than ${SECRET_BYTES_MIN} bytes`]: isShort(parsed.JWT_SECRET),
    'JWT_ISSUER is not set, so it is not checked': isByFile && parsed.JWT_ISSUER === undefined,
    'JWT_AUDIENCE is not set, so it is not checked': isByFile && parsed.JWT_AUDIENCE === undefined,
    'JWT_MERCHANT_CLAIM is not set, so the merchant is guessed: the first of merchant_id, client_id and sub in a token; name the claim of your issuer':
      parsed.JWT_JWKS_URL !== undefined && parsed.JWT_MERCHANT_CLAIM === undefined,
  });
};

const KNOWN: string[] = [...SETTING_NAMES, ...SECRET_SETTINGS.map((name) => `${name}_FILE`)];
const OURS = /^(STRIPE|KAFKA|PROVIDER|WEBHOOK|RATE_LIMIT|PERSONAL_DATA|JWT)_/;

const isOneLetterFrom = (a: string, b: string): boolean => {
  const [short, long] = a.length <= b.length ? [a, b] : [b, a];
  const at = [...long].findIndex((letter, index) => letter !== short[index]);
  const rest = short.slice(short.length === long.length ? at + 1 : at);
  return at !== -1 && rest === long.slice(at + 1);
};

/** One line, or none: the names that look like a setting of docs/settings.md and are none. */
export const misspelt = (env: NodeJS.ProcessEnv): string[] => {
  const found = Object.keys(env).flatMap((name) => {
    if (KNOWN.includes(name) || !/^\w+$/.test(name)) return [];
    const near = KNOWN.find((known) => isOneLetterFrom(name, known));
    if (near !== undefined) return [`${name} (is ${near} meant?)`];
    return OURS.test(name) ? [name] : [];
  });
  return found.length === 0 ? [] : [`no setting has the name ${found.join(', ')}`];
};
