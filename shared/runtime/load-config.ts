/**
 * The environment, parsed once (docs/settings.md). With any wrong setting the process does not
 * start: every problem is listed, each line names its setting, and none repeats a value that may be
 * a secret.
 */
import {
  type Config,
  type KafkaSecurity,
  type Mode,
  rateLimit,
  type StripeSettings,
  type TokenKeys,
} from './config.ts';
import {
  accountsOf,
  dataDirOf,
  kafkaCaOf,
  keysOf,
  merchantsOf,
  PROJECT_DIR,
  sealingKeyFileOf,
} from './settings/config-files.ts';
import { effectiveSettings } from './settings/effective.ts';
import { eventStoreAddressProblems } from './settings/event-store-address.ts';
import { withSecretFiles } from './settings/files.ts';
import type { MerchantSettings } from './settings/merchants.ts';
import {
  distributedProblems,
  isLiveKey,
  kafkaProblems,
  plaintextProblems,
  providerKindOf,
  providerNamesOf,
  providerProblems,
  rateProblems,
  ratesOf,
  secretProblems,
  stripeProblems,
  timesOf,
  tokenProblems,
  warningsOf,
} from './settings/problems.ts';
import {
  MAX_AMOUNT_DEFAULT,
  MAX_OPERATIONS_DEFAULT,
  type ParsedSettings,
  RECOVERY_DELAYS_MS_DEFAULT,
  SEAL_EVENTS_MAX_DEFAULT,
  SEAL_INTERVAL_MS_DEFAULT,
  SECRET_SETTINGS,
  STRIPE_API_URL_DEFAULT,
  STRIPE_API_VERSION_DEFAULT,
  settingsSchema,
  TOPIC_PREFIX_DEFAULT,
  TRACES_NAME_DEFAULT,
  TRACES_RATIO_DEFAULT,
  VERIFY_INTERVAL_MS_DEFAULT,
} from './settings/table.ts';

type ConfigResult = { ok: true; config: Config } | { ok: false; problems: string[] };

const RECONCILE_INTERVAL_MS_DEFAULT = 3_600_000;
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

const saslOf = ({
  KAFKA_SASL_MECHANISM: mechanism,
  KAFKA_SASL_USERNAME: username,
  KAFKA_SASL_PASSWORD: password,
}: ParsedSettings): KafkaSecurity['sasl'] =>
  mechanism === undefined || username === undefined || password === undefined
    ? undefined
    : { mechanism, username, password };

const STRIPE_PER_SECOND_DEFAULT = 25;

const stripeOf = (
  parsed: ParsedSettings,
  merchants: StripeSettings['merchants'],
): StripeSettings | undefined => {
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
    merchants,
  };
};

const tracesOf = ({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_SERVICE_NAME: serviceName = TRACES_NAME_DEFAULT,
  OTEL_TRACES_SAMPLER_ARG: ratio = TRACES_RATIO_DEFAULT,
}: ParsedSettings): Config['traces'] =>
  endpoint === undefined ? undefined : { endpoint, serviceName, ratio };

/** What was read from the files that settings name. */
type Files = {
  keys: TokenKeys;
  merchants: ReadonlyMap<string, MerchantSettings>;
  accounts: StripeSettings['merchants'];
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
      names: providerNamesOf(parsed),
      url: parsed.PROVIDER_URL,
      token: parsed.PROVIDER_TOKEN,
      ...providerTimes,
    },
    stripe: stripeOf(parsed, files.accounts),
    requestBudgetMs,
    recoveryDelaysMs: parsed.RECOVERY_DELAYS_MS ?? RECOVERY_DELAYS_MS_DEFAULT,
    reconcileIntervalMs: parsed.RECONCILE_INTERVAL_MS ?? RECONCILE_INTERVAL_MS_DEFAULT,
    maxInFlight: parsed.MAX_IN_FLIGHT ?? 2048,
    seals: {
      keyFile: sealingKeyFileOf(parsed),
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
    traces: tracesOf(parsed),
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

const configFrom = (mode: Mode, parsed: ParsedSettings): ConfigResult => {
  const keys = keysOf(parsed);
  const { merchants, problems: merchantProblems } = merchantsOf(parsed);
  const { accounts, problems: accountProblems } = accountsOf(parsed, merchants);
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
    ...accountProblems,
  ];
  if (problems.length > 0 || 'problem' in keys) return { ok: false, problems };
  const files = { keys: keys.keys, merchants, accounts, kafkaCa };
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

/** What is judged by another setting too, without naming it: nothing can be said while that is invalid. */
const JUDGED_BY: Readonly<Record<string, readonly string[]>> = {
  PROVIDER: ['PROVIDER_URL', 'PROVIDER_TIMEOUT_MS'],
  JWT_SECRET: ['JWT_ALGORITHMS'],
  JWT_JWKS_URL: ['JWT_ALGORITHMS'],
};

/** Without the invalid settings the rest may seem incomplete: such a line would be wrong. */
const furtherProblems = (rest: ConfigResult, invalid: readonly string[]): string[] => {
  if (rest.ok) return [];
  const unknown = new Set(invalid.flatMap((name) => [name, ...(JUDGED_BY[name] ?? [])]));
  const namesOf = (line: string) => line.match(/\b[A-Z][A-Z_]+\b/g) ?? [];
  return rest.problems.filter((line) => !namesOf(line).some((name) => unknown.has(name)));
};

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
