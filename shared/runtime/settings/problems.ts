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

/** `of`: the settings that it reads. Where one of them cannot be read itself, the problem may be none. */
type SettingProblem = { of: readonly string[]; line: string };

type Setting = (typeof SETTING_NAMES)[number];

/** A row: whether the rule is broken, what the line begins with, its rest, and which other settings the rule reads. */
type SettingRule = readonly [isBroken: boolean, name: string, problem: string, ...Setting[]];

const problemsIn = (rules: readonly SettingRule[]): SettingProblem[] =>
  rules.flatMap(([isBroken, name, problem, ...others]) =>
    isBroken ? [{ of: [name, ...others], line: `${name} ${problem}` }] : [],
  );

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

const READ_WITH_URL = ['PROVIDER_ALLOW_HTTP', 'PROVIDER'] as const;

/** Card numbers must not travel in the clear. */
const providerRules = (parsed: ParsedSettings): SettingRule[] => {
  const { PROVIDER: provider, PROVIDER_URL: url } = parsed;
  const { PROVIDER_TIMEOUT_MS: timeoutMs, REQUEST_BUDGET_MS: budgetMs } = parsed;
  const isPlain = isPlainHttp(url) && !parsed.PROVIDER_ALLOW_HTTP;
  const isLate = `(${timeoutMs}) must not be above REQUEST_BUDGET_MS (${budgetMs})`;
  const isMissing = provider === 'http' && url === undefined;
  const isForeign = provider !== 'http' && url !== undefined;
  return [
    [timeoutMs > budgetMs, 'PROVIDER_TIMEOUT_MS', isLate, 'REQUEST_BUDGET_MS', 'PROVIDER'],
    [isPlain, 'PROVIDER_URL', 'must be https (or set PROVIDER_ALLOW_HTTP=true)', ...READ_WITH_URL],
    [isMissing, 'PROVIDER_URL', 'must be set with PROVIDER=http', 'PROVIDER'],
    [isForeign, 'PROVIDER_URL', `must not be set with PROVIDER=${provider}`, 'PROVIDER'],
  ];
};

const stripeRules = (parsed: ParsedSettings): SettingRule[] => {
  const { STRIPE_SECRET_KEY: key, STRIPE_API_VERSION: version } = parsed;
  const KEY = 'STRIPE_SECRET_KEY';
  if (parsed.PROVIDER !== 'stripe')
    return [[key !== undefined, KEY, 'must not be set without PROVIDER=stripe', 'PROVIDER']];
  const isLive = key !== undefined && isLiveKey(key);
  const isUnmeant = isLive && !parsed.STRIPE_LIVE;
  const sendsTokens = isLive && parsed.STRIPE_TEST_TOKENS === true;
  return [
    [key === undefined, KEY, 'must be set with PROVIDER=stripe', 'PROVIDER'],
    [isUnmeant, KEY, 'is a live key: money would move (set STRIPE_LIVE=true)', 'STRIPE_LIVE'],
    [sendsTokens, 'STRIPE_TEST_TOKENS', 'must not be true with a live key', KEY],
    // Earlier versions list what a capture of part released as a refund of what was never taken.
    [version < '2025-03-31', 'STRIPE_API_VERSION', 'must not be before 2025-03-31'],
    [isPlainHttp(parsed.STRIPE_API_URL), 'STRIPE_API_URL', 'must be https'],
  ];
};

/** `%2F` begins the path of a socket file. */
const isElsewhere = (hosts: readonly string[]): boolean =>
  !hosts
    .map((host) => host.replace(/:\d+$/, ''))
    .every((host) => LOOPBACK.test(host) || host.startsWith('%2F'));

const hostsOf = (url: string): string[] =>
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
const plaintextRules = (parsed: ParsedSettings): SettingRule[] => {
  const { EVENTSTOREDB_URL: esdb, MONGODB_URL: mongo, KAFKA_BROKERS: brokers = [] } = parsed;
  const rule = (
    engine: (typeof PLAINTEXT_ENGINES)[number],
    isPlain: boolean,
    setting: Setting,
    withTls: string,
    ...others: Setting[]
  ): SettingRule => [
    isPlain && parsed.PLAINTEXT_ALLOWED?.includes(engine) !== true,
    setting,
    `must use TLS on a host other than loopback: ${withTls}, or set PLAINTEXT_ALLOWED=${engine}`,
    ...others,
    'PLAINTEXT_ALLOWED',
  ];
  const isEventStorePlain =
    esdb !== undefined && parameterOf(esdb, 'tls') === 'false' && isElsewhere(hostsOf(esdb));
  const isMongoDbPlain = mongo !== undefined && isMongoPlain(mongo);
  const isKafkaPlain = !parsed.KAFKA_TLS && isElsewhere(brokers);
  return [
    rule('eventstoredb', isEventStorePlain, 'EVENTSTOREDB_URL', 'leave out tls=false'),
    rule('mongodb', isMongoDbPlain, 'MONGODB_URL', 'add tls=true'),
    rule('kafka', isKafkaPlain, 'KAFKA_BROKERS', 'set KAFKA_TLS=true', 'KAFKA_TLS'),
    rule('jwks', isPlainHttp(parsed.JWT_JWKS_URL), 'JWT_JWKS_URL', 'use https'),
  ];
};

const KAFKA_LOGIN = ['KAFKA_SASL_MECHANISM', 'KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const;

const kafkaRules = (parsed: ParsedSettings): SettingRule[] => {
  const missing = KAFKA_LOGIN.filter((name) => parsed[name] === undefined);
  const isPart = missing.length > 0 && missing.length < KAFKA_LOGIN.length;
  const hasUnusedCa = parsed.KAFKA_CA_FILE !== undefined && !parsed.KAFKA_TLS;
  const whole = "must be set with the other settings of Kafka's login";
  return [
    [isPart, missing.join(', '), whole, ...KAFKA_LOGIN],
    [hasUnusedCa, 'KAFKA_TLS', 'must be true with KAFKA_CA_FILE', 'KAFKA_CA_FILE'],
  ];
};

const KEY_SOURCES = ['JWT_SECRET', 'JWT_JWKS_URL', 'JWT_JWKS_FILE'] as const;

const algorithmsAllowed = (parsed: ParsedSettings): string[] => {
  if (parsed.JWT_SECRET !== undefined) return [SECRET_ALGORITHM];
  const hasPublicKeys = parsed.JWT_JWKS_URL !== undefined || parsed.JWT_JWKS_FILE !== undefined;
  return hasPublicKeys ? PUBLIC_KEY_ALGORITHMS : [LOCAL_KEY_ALGORITHM];
};

const tokenRules = (parsed: ParsedSettings): SettingRule[] => {
  const { JWT_ISSUER: issuer, JWT_AUDIENCE: audience } = parsed;
  const sources = KEY_SOURCES.filter((name) => parsed[name] !== undefined);
  const allowed = algorithmsAllowed(parsed);
  // A public key must never serve as an HMAC secret.
  const isForeign = parsed.JWT_ALGORITHMS?.some((name) => !allowed.includes(name)) === true;
  const isWrong = sources.length <= 1 && isForeign;
  const isByUrl = parsed.JWT_JWKS_URL !== undefined;
  const ofThese = `must be of ${allowed.join(', ')} with these keys`;
  const byUrl = 'must be set with JWT_JWKS_URL';
  return [
    [sources.length > 1, sources.join(', '), 'must not be set together', ...sources],
    [isWrong, 'JWT_ALGORITHMS', ofThese, ...KEY_SOURCES],
    [isByUrl && issuer === undefined, 'JWT_ISSUER', byUrl, 'JWT_JWKS_URL'],
    [isByUrl && audience === undefined, 'JWT_AUDIENCE', byUrl, 'JWT_JWKS_URL'],
  ];
};

/** The embedded mode has defaults for these; several processes must be given each. */
const distributedRules = (mode: Mode, parsed: ParsedSettings): SettingRule[] => {
  if (!isDistributed(mode)) return [];
  const { EVENTSTOREDB_URL: events, MONGODB_URL: models, JWT_SECRET: secret } = parsed;
  const isSimulated = mode === 'command-api' && parsed.PROVIDER === 'simulator';
  const hasNoKeys = KEY_SOURCES.every((name) => parsed[name] === undefined);
  const set = `must be set for the ${mode}`;
  const long = `must be at least ${SECRET_BYTES_MIN} bytes for the ${mode}`;
  const served = `${set}; npm run start:provider serves the simulated one`;
  return [
    [events === undefined, 'EVENTSTOREDB_URL', set],
    [models === undefined, 'MONGODB_URL', set],
    [isSimulated, 'PROVIDER_URL', served, 'PROVIDER'],
    [hasNoKeys, `one of ${KEY_SOURCES.join(', ')}`, set, ...KEY_SOURCES],
    [isShort(secret), 'JWT_SECRET', long],
  ];
};

/** Another secret would charge repeats again (gaps §8), sign webhooks by other keys, and open no personal data. */
const secretRules = (mode: Mode, parsed: ParsedSettings): SettingRule[] => {
  const isShared = parsed.EVENTSTOREDB_URL !== undefined || isDistributed(mode);
  const isNeeded = mode !== 'provider' && isShared;
  const own = ['IDEMPOTENCY_SECRET', 'WEBHOOK_SECRET', 'PERSONAL_DATA_KEK'] as const;
  const previous = ['IDEMPOTENCY_SECRET_PREVIOUS', 'PERSONAL_DATA_PREVIOUS_KEK'] as const;
  const long = `must be at least ${SECRET_BYTES_MIN} bytes`;
  const set = 'must be set with EventStoreDB, to the same value in every process';
  return [
    ...[...own, ...previous].map((name): SettingRule => [isShort(parsed[name]), name, long]),
    ...own.map((name): SettingRule => [isNeeded && parsed[name] === undefined, name, set]),
  ];
};

export const settingProblems = (mode: Mode, parsed: ParsedSettings): SettingProblem[] => {
  const { EVENTSTOREDB_URL: url, RATE_LIMIT_BURST: burst, RATE_LIMIT_PER_SECOND: rate } = parsed;
  const { ERASE_AFTER_DAYS: days, ERASURE_HOLD_DAYS: holdDays } = parsed;
  const hold = 'ERASURE_HOLD_DAYS';
  const addressProblems = url === undefined ? [] : eventStoreAddressProblems(url);
  const least = 'must be at least 1 when RATE_LIMIT_PER_SECOND is set';
  return problemsIn([
    ...addressProblems.map((problem): SettingRule => [true, 'EVENTSTOREDB_URL', problem]),
    ...providerRules(parsed),
    ...stripeRules(parsed),
    ...plaintextRules(parsed),
    ...kafkaRules(parsed),
    ...tokenRules(parsed),
    [burst === 0 && rate > 0, 'RATE_LIMIT_BURST', least, 'RATE_LIMIT_PER_SECOND'],
    ...distributedRules(mode, parsed),
    ...secretRules(mode, parsed),
    [days > 0 && days < holdDays, 'ERASE_AFTER_DAYS', `must not be below ${hold}`, hold],
  ]);
};

export const warningsOf = (parsed: ParsedSettings): string[] => {
  const isByFile = parsed.JWT_JWKS_FILE !== undefined;
  const isGuessed = parsed.JWT_JWKS_URL !== undefined && parsed.JWT_MERCHANT_CLAIM === undefined;
  const unchecked = 'is not set, so it is not checked';
  const guessed =
    'is not set, so the merchant is guessed: the first of merchant_id, client_id and sub in a token; name the claim of your issuer';
  const warnings = problemsIn([
    [isShort(parsed.JWT_SECRET), 'JWT_SECRET', `is shorter than ${SECRET_BYTES_MIN} bytes`],
    [isByFile && parsed.JWT_ISSUER === undefined, 'JWT_ISSUER', unchecked],
    [isByFile && parsed.JWT_AUDIENCE === undefined, 'JWT_AUDIENCE', unchecked],
    [isGuessed, 'JWT_MERCHANT_CLAIM', guessed],
  ]);
  return warnings.map(({ line }) => line);
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
