import { settingsPath } from './settings/files.ts';
import type { MerchantAccount, MerchantSettings, Merchants } from './settings/merchants.ts';
import { warningsOf } from './settings/problems.ts';
import { isLiveKey, type Mode, type ParsedSettings, providerNameAt } from './settings/table.ts';

export type TokenKeys =
  | { kind: 'secret'; secret: string }
  | { kind: 'jwks-url'; url: string }
  | { kind: 'jwks-file'; jwks: { keys: Record<string, unknown>[] } }
  /** In the data folder, made on first use. */
  | { kind: 'local'; folder: string };

export type EffectiveSetting = {
  name: string;
  value: string;
  origin: 'environment' | 'file' | 'default';
};

type SettingsFiles = {
  keys: TokenKeys;
  merchants: Merchants;
  accounts: ReadonlyMap<string, MerchantAccount>;
  kafkaCa: string | undefined;
};

/** A token bucket; `perSecond` 0 is off. */
const rateLimit = (perSecond = 0, burst = perSecond * 2) => ({ perSecond, burst });

const kafkaOf = (parsed: ParsedSettings, ca: string | undefined) => {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: username } = parsed;
  const { KAFKA_BROKERS: brokers, KAFKA_SASL_PASSWORD: password } = parsed;
  if (brokers === undefined) return undefined;
  return {
    brokers,
    topicPrefix: parsed.KAFKA_TOPIC_PREFIX,
    /** Undefined: plain text. Without `ca`: Node's own list. */
    tls: parsed.KAFKA_TLS ? { ca } : undefined,
    /** Holds a password: never log it. */
    sasl: mechanism && username && password ? { mechanism, username, password } : undefined,
  };
};

/** Undefined: another provider. Holds secrets: never log it. */
const stripeOf = (parsed: ParsedSettings, merchants: SettingsFiles['accounts']) => {
  const { STRIPE_SECRET_KEY: secretKey } = parsed;
  if (parsed.PROVIDER !== 'stripe' || secretKey === undefined) return undefined;
  const live = isLiveKey(secretKey);
  return {
    secretKey,
    live,
    url: parsed.STRIPE_API_URL,
    version: parsed.STRIPE_API_VERSION,
    account: parsed.STRIPE_ACCOUNT,
    testTokens: parsed.STRIPE_TEST_TOKENS ?? !live,
    perSecondMax: parsed.STRIPE_CREATES_PER_SECOND,
    /** One or two; none: webhooks are rejected. */
    webhookSecrets: parsed.STRIPE_WEBHOOK_SECRET ?? [],
    merchants,
  };
};

const tracesOf = (parsed: ParsedSettings) => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SERVICE_NAME: serviceName } = parsed;
  if (endpoint === undefined) return undefined;
  return { endpoint, serviceName, ratio: parsed.OTEL_TRACES_SAMPLER_ARG };
};

const generalRules = (parsed: ParsedSettings) => ({
  maxAmount: parsed.MAX_AMOUNT,
  /** Undefined: every brand, unknown ones included (gaps §3). */
  acceptedBrands: parsed.ACCEPTED_BRANDS,
  merchantReference: parsed.MERCHANT_REFERENCE,
  rateLimit: rateLimit(parsed.RATE_LIMIT_PER_SECOND, parsed.RATE_LIMIT_BURST),
});
type Rules = ReturnType<typeof generalRules>;

/** With a rate of its own and no burst, a merchant's burst is twice that rate. */
const rulesByMerchant = (general: Rules, merchants: Merchants): ReadonlyMap<string, Rules> => {
  const { perSecond, burst } = general.rateLimit;
  const rulesOf = (own: MerchantSettings): Rules => ({
    maxAmount: own.maxAmount ?? general.maxAmount,
    acceptedBrands: own.acceptedBrands ?? general.acceptedBrands,
    merchantReference: own.merchantReference ?? general.merchantReference,
    rateLimit:
      own.rateLimitPerSecond === undefined
        ? rateLimit(perSecond, own.rateLimitBurst ?? burst)
        : rateLimit(own.rateLimitPerSecond, own.rateLimitBurst),
  });
  return new Map([...merchants].map(([merchantId, own]) => [merchantId, rulesOf(own)]));
};

/** Without `effective`. Names that end in Ms are milliseconds. */
export const configOf = (mode: Mode, parsed: ParsedSettings, files: SettingsFiles) => {
  const { SEALING_KEY_FILE: sealingKey, SEALED_HEAD_FILE: sealedHead } = parsed;
  const { PROVIDER: kind, PROVIDER_URL: address, PROVIDER_SAME_AS: sameAs = [] } = parsed;
  const ownName = address === undefined ? kind : providerNameAt(address);
  const rules = generalRules(parsed);
  return {
    mode,
    host: parsed.HOST,
    port: parsed.PORT,
    dataDir: settingsPath(parsed.DATA_DIR),
    logLevel: parsed.LOG_LEVEL,
    /** Undefined: SQLite in `dataDir`. May hold a password: never log it. */
    eventStoreDbUrl: parsed.EVENTSTOREDB_URL,
    /** Undefined: SQLite in `dataDir`. May hold a password: never log it. */
    mongoUrl: parsed.MONGODB_URL,
    kafka: kafkaOf(parsed, files.kafkaCa),
    tokens: {
      keys: files.keys,
      issuer: parsed.JWT_ISSUER,
      audience: parsed.JWT_AUDIENCE,
      /** The first of these that is present names the merchant. */
      merchantClaims: parsed.JWT_MERCHANT_CLAIM ?? ['merchant_id', 'client_id', 'sub'],
      algorithms: parsed.JWT_ALGORITHMS,
    },
    provider: {
      kind,
      /** The first is stored with each intent; the others are the same provider in older events (ADR-0247). */
      names: [ownName, ...sameAs] as [name: string, ...sameAs: string[]],
      url: address,
      token: parsed.PROVIDER_TOKEN,
      authenticationTimeoutMs: parsed.AUTHENTICATION_TIMEOUT_MS,
      timeoutMs: parsed.PROVIDER_TIMEOUT_MS,
      // A connection never takes longer than a call.
      connectTimeoutMs: Math.min(parsed.PROVIDER_CONNECT_TIMEOUT_MS, parsed.PROVIDER_TIMEOUT_MS),
    },
    stripe: stripeOf(parsed, files.accounts),
    requestBudgetMs: parsed.REQUEST_BUDGET_MS,
    recoveryDelaysMs: parsed.RECOVERY_DELAYS_MS,
    reconcileIntervalMs: parsed.RECONCILE_INTERVAL_MS,
    maxInFlight: parsed.MAX_IN_FLIGHT,
    /** How long new requests are served after the signal to stop. */
    drainMs: parsed.SHUTDOWN_DRAIN_MS,
    seals: {
      /** Absolute; undefined: in the data folder. */
      keyFile: sealingKey === undefined ? undefined : settingsPath(sealingKey),
      /** Absolute; left out: next to the key. */
      ...(sealedHead !== undefined && { headFile: settingsPath(sealedHead) }),
      eventsMax: parsed.SEAL_EVENTS_MAX,
      everyMs: parsed.SEAL_INTERVAL_MS,
    },
    verifyEveryMs: parsed.VERIFY_INTERVAL_MS,
    maxOperationsPerPayment: parsed.MAX_OPERATIONS_PER_PAYMENT,
    /** Per address, for requests without a valid token (gaps §11). */
    unauthenticatedRateLimit: rateLimit(parsed.RATE_LIMIT_UNAUTHENTICATED_PER_SECOND),
    /** Undefined: the secret in the data folder, made on first start (gaps §8). */
    idempotencySecret: parsed.IDEMPOTENCY_SECRET,
    /** Its hashes are still recognised (ADR-0105). */
    idempotencySecretPrevious: parsed.IDEMPOTENCY_SECRET_PREVIOUS,
    webhooks: {
      secret: parsed.WEBHOOK_SECRET,
      allowedNetworks: parsed.WEBHOOK_ALLOWED_NETWORKS ?? [],
    },
    /** Undefined: the master key in the data folder. The previous one is read until a rotation has ended. */
    personalData: {
      kek: parsed.PERSONAL_DATA_KEK,
      previousKek: parsed.PERSONAL_DATA_PREVIOUS_KEK,
    },
    erasure: {
      holdDays: parsed.ERASURE_HOLD_DAYS,
      /** 1: one person may erase. */
      approvers: parsed.ERASURE_APPROVERS,
    },
    /** Absolute; undefined: erasures are in the log alone. */
    erasureLedger: parsed.ERASURE_LEDGER && settingsPath(parsed.ERASURE_LEDGER),
    /** Since a payment changed last; 0: nothing is erased by itself. */
    retentionDays: parsed.ERASE_AFTER_DAYS,
    traces: tracesOf(parsed),
    /** For a merchant that the merchants' file does not name. */
    rules,
    merchants: rulesByMerchant(rules, files.merchants),
    warnings: warningsOf(parsed),
  };
};

export type Config = ReturnType<typeof configOf> & {
  effective: readonly EffectiveSetting[];
};

/** The current one first; `own` where the settings name none (gaps §8). */
export const secretsOf = (
  { idempotencySecret, idempotencySecretPrevious: previous }: Config,
  own = '',
): [current: string, ...previous: string[]] => [
  idempotencySecret ?? own,
  ...(previous === undefined ? [] : [previous]),
];
