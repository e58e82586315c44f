/** The settings of a process, as they are once they have been read (load-config.ts). */
import type { CardBrand } from '../payment/card.ts';
import type { MerchantSettings } from './settings/merchants.ts';
import type { ParsedSettings, PROVIDERS, SASL_MECHANISMS } from './settings/table.ts';

/**
 * `embedded`: everything in one process. `provider`: the simulated provider in a process of its own.
 * The others are the three processes of docs/several-processes.md; each may run more than once.
 */
export type Mode = 'embedded' | 'provider' | DistributedMode;
/** A process that shares its engines with others. */
export type DistributedMode = 'command-api' | 'query-api' | 'projector';

/** The source of the keys that verify tokens (gaps §10). */
export type TokenKeys =
  | { kind: 'secret'; secret: string }
  | { kind: 'jwks-url'; url: string }
  | { kind: 'jwks-file'; path: string; jwks: { keys: Record<string, unknown>[] } }
  /** The ES256 key pair in the data folder, made on first use. */
  | { kind: 'local'; folder: string };

export type KafkaSecurity = {
  /** Undefined: plain text. `ca` holds certificates in PEM; undefined: Node's own list. */
  tls: { ca: string | undefined } | undefined;
  /** Undefined: no login. Holds a password: never log it. */
  sasl:
    | { mechanism: (typeof SASL_MECHANISMS)[number]; username: string; password: string }
    | undefined;
};

/** A token bucket: `perSecond` 0 is off; `burst` is its size in requests. */
export type RateLimit = { perSecond: number; burst: number };

/** The rules of one merchant: its own settings, else the installation's. */
export type MerchantRules = {
  /** In minor units; a higher amount is a BUSINESS_RULE_VIOLATION (gaps §3). */
  maxAmount: number;
  /** Undefined: every brand, unknown ones included (gaps §3). */
  acceptedBrands: readonly CardBrand[] | undefined;
  merchantReference: 'allow' | 'unique';
  rateLimit: RateLimit;
};

export type StripeSettings = {
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
  /** Merchants with an account of their own, by id. */
  merchants: ReadonlyMap<string, MerchantAccount>;
};

/** One setting; the value of a secret is hidden, that of an unset one is `not set`. */
export type EffectiveSetting = {
  name: string;
  value: string;
  origin: 'environment' | 'file' | 'default';
};

/** One merchant's own account of Stripe. Holds secrets: never log it. */
export type MerchantAccount = {
  /** The installation's, or the merchant's own. */
  secretKey: string;
  /** With the installation's key alone. */
  account: string | undefined;
  /** The secrets that sign the notices of the merchant's own account, one or two. */
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
    /** The first one is stored with each intent; the others mean the same provider in older events. */
    names: readonly string[];
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
  /** Undefined: no traces. `endpoint` is the collector's base address, `ratio` the share that is kept. */
  traces: { endpoint: string; serviceName: string; ratio: number } | undefined;
  /** The rules of a merchant that the merchants' file does not name. */
  rules: MerchantRules;
  merchants: ReadonlyMap<string, MerchantSettings>;
  /** One line each, for the banner. */
  warnings: readonly string[];
};

/** A token bucket; its burst is twice its rate where none is given. */
export const rateLimit = (perSecond = 0, burst = perSecond * 2): RateLimit => ({
  perSecond,
  burst,
});

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
