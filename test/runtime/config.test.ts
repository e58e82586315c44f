/** docs/settings.md: settings are read once, and every wrong one is named before the process ends. */
import { chmodSync, writeFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type { Config } from '../../shared/runtime/config.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();

const fileWith = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};

const load = (env: NodeJS.ProcessEnv): Config => {
  const result = loadConfig(env);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  return result.config;
};

const problemsOf = (env: NodeJS.ProcessEnv): string[] => {
  const result = loadConfig(env);
  return result.ok ? [] : result.problems;
};

const publicKey = { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' };
const secret = 'a-secret-that-is-long-enough-for-HS256';

const STRIPE_TEST = { PROVIDER: 'stripe', STRIPE_SECRET_KEY: 'rk_test_1' };
const LIVE = { PROVIDER: 'stripe', STRIPE_SECRET_KEY: 'sk_live_1', STRIPE_LIVE: 'true' };

describe('settings: what is not set', () => {
  test('has the defaults of docs/settings.md', () => {
    expect(load({})).toMatchObject({
      port: 8080,
      tokens: { keys: { kind: 'local' }, merchantClaims: ['merchant_id', 'client_id', 'sub'] },
      provider: { url: undefined, connectTimeoutMs: 1000, timeoutMs: 5000 },
      requestBudgetMs: 10_000,
      recoveryDelaysMs: [1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 900_000],
      idempotencySecret: undefined,
      rules: { acceptedBrands: undefined, rateLimit: { perSecond: 0, burst: 0 } },
      unauthenticatedRateLimit: { perSecond: 0, burst: 0 },
      warnings: [],
    });
  });

  test('is also what is empty or blank', () => {
    expect(load({ PORT: '', JWT_SECRET: ' ', EVENTSTOREDB_URL: '' })).toEqual(load({}));
  });

  test('the simulated provider listens on 8090', () => {
    const result = loadConfig({}, 'provider');
    expect(result.ok && result.config.port).toBe(8090);
  });

  test('a relative DATA_DIR is relative to the project, whatever the current folder is', () => {
    const { dataDir } = load({ DATA_DIR: './elsewhere' });
    expect(isAbsolute(dataDir)).toBe(true);
    expect(dataDir).toBe(join(import.meta.dirname, '..', '..', 'elsewhere'));
  });

  test('the configuration is frozen', () => {
    const config = load({ ACCEPTED_BRANDS: 'VISA' });
    expect(() => Object.assign(config.provider, { timeoutMs: 1 })).toThrow(TypeError);
    expect(() => (config.recoveryDelaysMs as number[]).push(1)).toThrow(TypeError);
  });
});

describe('settings: what is set and right', () => {
  test.each<[NodeJS.ProcessEnv, object]>([
    [{ PORT: '0' }, { port: 0 }],
    [{ HOST: '::1' }, { host: '::1' }],
    [{ RECOVERY_DELAYS_MS: '5, 10' }, { recoveryDelaysMs: [5, 10] }],
    [{ ACCEPTED_BRANDS: 'VISA, AMEX' }, { rules: { acceptedBrands: ['VISA', 'AMEX'] } }],
    [{ MAX_AMOUNT: '9007199254740991' }, { rules: { maxAmount: Number.MAX_SAFE_INTEGER } }],
    [{ MERCHANT_REFERENCE: 'unique' }, { rules: { merchantReference: 'unique' } }],
    [{ RATE_LIMIT_PER_SECOND: '50' }, { rules: { rateLimit: { perSecond: 50, burst: 100 } } }],
    [
      { RATE_LIMIT_PER_SECOND: '50', RATE_LIMIT_BURST: '60' },
      { rules: { rateLimit: { perSecond: 50, burst: 60 } } },
    ],
    [
      { RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: '5' },
      { unauthenticatedRateLimit: { perSecond: 5, burst: 10 } },
    ],
    [{ PROVIDER_TIMEOUT_MS: '200' }, { provider: { connectTimeoutMs: 200, timeoutMs: 200 } }],
    [{ PROVIDER_TIMEOUT_MS: '10000' }, { provider: { timeoutMs: 10_000 } }],
    [{ JWT_MERCHANT_CLAIM: 'org, sub' }, { tokens: { merchantClaims: ['org', 'sub'] } }],
    [{ JWT_ALGORITHMS: 'ES256' }, { tokens: { algorithms: ['ES256'] } }],
    [
      { JWT_SECRET: secret, JWT_ALGORITHMS: 'HS256', JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' },
      { tokens: { keys: { kind: 'secret', secret }, issuer: 'i', audience: 'a' }, warnings: [] },
    ],
    [
      { JWT_JWKS_URL: 'https://issuer.example/keys', JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' },
      { tokens: { keys: { kind: 'jwks-url', url: 'https://issuer.example/keys' } } },
    ],
    [
      { JWT_JWKS_FILE: fileWith('jwks.json', JSON.stringify({ keys: [publicKey] })) },
      { tokens: { keys: { kind: 'jwks-file', jwks: { keys: [publicKey] } } } },
    ],
    // A call to Stripe is two round trips.
    [STRIPE_TEST, { provider: { kind: 'stripe', timeoutMs: 25_000 }, requestBudgetMs: 30_000 }],
    [STRIPE_TEST, { stripe: { live: false, testTokens: true, perSecondMax: 25 } }],
    [LIVE, { stripe: { live: true, testTokens: false } }],
  ])('%j is taken', (env, expected) => {
    expect(load(env)).toMatchObject(expected);
  });

  test.each(['localhost', '127.0.0.1', '127.8.8.8', '[::1]'])(
    'provider.md: plain http is accepted to the loopback host %s',
    (host) => {
      expect(load({ PROVIDER_URL: `http://${host}:8090` }).provider.url).toContain(host);
    },
  );

  test.each<[NodeJS.ProcessEnv, string[]]>([
    [{}, ['simulator']],
    [STRIPE_TEST, ['stripe']],
    [{ PROVIDER_URL: 'https://Pay.example/', PROVIDER_TOKEN: 't' }, ['http:pay.example']],
    [{ PROVIDER_URL: 'https://pay.example:8443/v1/?a=b' }, ['http:pay.example:8443/v1']],
    [
      { PROVIDER_URL: 'http://localhost:8090', PROVIDER_SAME_AS: 'simulator, http:old.example/v1' },
      ['http:localhost:8090', 'simulator', 'http:old.example/v1'],
    ],
  ])('ADR-0247: with %j events name the provider, and know it by, %j', (env, names) => {
    expect(load(env).provider.names).toEqual(names);
  });

  test.each([
    'https://old.example/v1',
    'http://old.example/v1',
    'http:old.example/v1/',
    'http:Old.example/v1',
    'http:old.example/v1?a=b',
    'http:',
    'Stripe',
  ])('ADR-0247: %s in PROVIDER_SAME_AS, which no event ever names, is refused', (name) => {
    expect(() => load({ PROVIDER_SAME_AS: name })).toThrow(
      'PROVIDER_SAME_AS must be a comma list of simulator, stripe and http:host/path, as events have them',
    );
  });

  test.each(['https://pay.example:80/v1/', 'http://localhost:443', 'https://ü.example:8443/a%20b'])(
    'ADR-0247: the name that events get at %s is taken in PROVIDER_SAME_AS',
    (url) => {
      const [name = ''] = load({ PROVIDER_URL: url }).provider.names;
      expect(load({ PROVIDER_SAME_AS: name }).provider.names).toEqual(['simulator', name]);
    },
  );

  test('ADR-0247: a name fits the field of an event, however long the address is', () => {
    const { names } = load({ PROVIDER_URL: `https://pay.example/${'a'.repeat(1_000)}` }).provider;
    expect(names.map(({ length }) => length)).toEqual([255]);
  });

  test('provider.md: plain http to another host is accepted only with PROVIDER_ALLOW_HTTP=true', () => {
    const env = { PROVIDER_URL: 'http://provider.example' };
    expect(load({ ...env, PROVIDER_ALLOW_HTTP: 'true' }).provider.url).toBe(env.PROVIDER_URL);
    expect(problemsOf({ ...env, PROVIDER_ALLOW_HTTP: 'false' })).toHaveLength(1);
  });
});

describe('settings: what is set and wrong', () => {
  const URL = 'https://issuer.example';
  const HTTPS = 'https://provider.example';
  const absent = join(folder, 'absent');
  const LIVE_KEY = 'is a live key: money would move (set STRIPE_LIVE=true)';
  const NETWORKS = 'must be a comma list of networks such as 10.0.0.0/8';
  const AT_LEAST_1 = 'must be at least 1 when RATE_LIMIT_PER_SECOND is set';
  const keysIn = (name: string, key: object) => fileWith(name, JSON.stringify({ keys: [key] }));
  const PRIVATE = keysIn('d.json', { ...publicKey, d: 'AA' });
  const PUBLIC = keysIn('k.json', publicKey);
  const SECRETS_3 = Array(3).fill('whsec_12345678').join();
  const shared = {
    IDEMPOTENCY_SECRET: secret,
    WEBHOOK_SECRET: secret,
    PERSONAL_DATA_KEK: secret,
  };

  test.each<[setting: string, value: string, problem: string, others?: NodeJS.ProcessEnv]>([
    ['PORT', '65536', 'must be a whole number from 0 to 65535'],
    ['PORT', '80.5', 'must be a whole number from 0 to 65535'],
    ['HOST', 'my host', 'must be a host name or an address'],
    ['MAX_AMOUNT', '9007199254740993', 'must be a whole number from 1 to 9007199254740991'],
    ['ACCEPTED_BRANDS', 'VISA,visa', 'must be a comma list of VISA, MASTERCARD'],
    ['RECOVERY_DELAYS_MS', '1,,2', 'must be a comma list of milliseconds'],
    ['RECOVERY_DELAYS_MS', '0', 'must be a comma list of milliseconds'],
    ['REQUEST_BUDGET_MS', '0', 'must be a whole number of milliseconds from 1'],
    ['PROVIDER_TIMEOUT_MS', '10001', '(10001) must not be above REQUEST_BUDGET_MS (10000)'],
    ['PROVIDER_URL', 'ftp://provider.example', 'must be an http or https address'],
    ['PROVIDER_URL', 'http://provider.example', 'must be https'],
    ['PROVIDER_URL', 'http://localhost.example', 'must be https'],
    ['PROVIDER_URL', 'https://u:p@provider.example', 'must not hold a user name'],
    ['PROVIDER_URL', HTTPS, 'must not be set with PROVIDER=simulator', { PROVIDER: 'simulator' }],
    ['PROVIDER_URL', '', 'must be set with PROVIDER=http', { PROVIDER: 'http' }],
    ['PROVIDER', 'paypal', 'must be one of simulator, http, stripe'],
    ['STRIPE_SECRET_KEY', '', 'must be set with PROVIDER=stripe', { PROVIDER: 'stripe' }],
    ['STRIPE_SECRET_KEY', 'rk_test_1', 'must not be set without PROVIDER=stripe'],
    ['STRIPE_SECRET_KEY', 'rk_test_1', 'must not be set without', { PROVIDER: 'simulator' }],
    ['STRIPE_SECRET_KEY', 'pk_test_1', 'must be a secret or restricted key'],
    ['STRIPE_SECRET_KEY', 'sk_live_1', LIVE_KEY, { PROVIDER: 'stripe' }],
    ['STRIPE_TEST_TOKENS', 'true', 'must not be true with a live key', LIVE],
    ['STRIPE_API_URL', 'http://stripe.example', 'must be https', LIVE],
    ['STRIPE_API_VERSION', '2025-02-24.acacia', 'must not be before 2025-03-31', LIVE],
    ['STRIPE_ACCOUNT', 'me', 'must be the id of an account'],
    ['STRIPE_WEBHOOK_SECRET', SECRETS_3, 'must hold two secrets at most'],
    ['JWT_ALGORITHMS', 'ES256,None', 'must not allow none'],
    ['JWT_ALGORITHMS', 'ES257', 'must be a comma list of RS256'],
    ['JWT_ALGORITHMS', 'RS256', 'must be of ES256 with these keys'],
    ['JWT_ALGORITHMS', 'RS256', 'must be of HS256', { JWT_SECRET: secret }],
    ['JWT_ISSUER', '', 'must be set with JWT_JWKS_URL', { JWT_JWKS_URL: URL, JWT_AUDIENCE: 'a' }],
    ['JWT_AUDIENCE', '', 'must be set with JWT_JWKS_URL', { JWT_JWKS_URL: URL, JWT_ISSUER: 'i' }],
    ['JWT_JWKS_FILE', absent, `names a file that cannot be read (ENOENT): ${absent}`],
    ['JWT_JWKS_FILE', fileWith('t.json', '{'), 'names a file that is not JSON'],
    ['JWT_JWKS_FILE', PRIVATE, 'must name a JWK set of public keys'],
    ['JWT_JWKS_FILE', PUBLIC, 'must not be set together', { JWT_SECRET: secret }],
    ['IDEMPOTENCY_SECRET', 'x'.repeat(31), 'must be at least 32 bytes'],
    ['PERSONAL_DATA_KEK', 'x'.repeat(31), 'must be at least 32 bytes'],
    ['PERSONAL_DATA_PREVIOUS_KEK', 'x'.repeat(31), 'must be at least 32 bytes'],
    ['ERASE_AFTER_DAYS', '30', 'must not be below ERASURE_HOLD_DAYS'],
    ['WEBHOOK_ALLOWED_NETWORKS', '10.0.0.0', NETWORKS],
    ['WEBHOOK_ALLOWED_NETWORKS', '10.0.0.0/33', NETWORKS],
    ['WEBHOOK_ALLOWED_NETWORKS', 'localhost/8', NETWORKS],
    ['WEBHOOK_ALLOWED_NETWORKS', '::1/129', NETWORKS],
    ['RATE_LIMIT_BURST', '0', AT_LEAST_1, { RATE_LIMIT_PER_SECOND: '5' }],
    ['EVENTSTOREDB_URL', 'http://localhost:2113', 'must be an address such as', shared],
    ['MONGODB_URL', 'mongodb://localhost', 'must be an address with a database name'],
    ['MONGODB_URL', 'mongodb://localhost/?w=1', 'must be an address with a database name'],
    ['KAFKA_BROKERS', 'localhost', 'must be a comma list of host:port'],
    ['KAFKA_TOPIC_PREFIX', 'a b', 'must be 1 to 200 characters'],
  ])('%s=%j is a problem: %s', (setting, value, problem, others = {}) => {
    expect(problemsOf({ ...others, [setting]: value })).toEqual([
      expect.stringContaining(`${setting} ${problem}`),
    ]);
  });

  describe('in several processes', () => {
    const secret = 's'.repeat(32);
    const whole = {
      EVENTSTOREDB_URL: 'esdb://localhost:2113?tls=false',
      MONGODB_URL: 'mongodb://user:secret@localhost:27017/payments?directConnection=true',
      KAFKA_BROKERS: 'localhost:9092, 127.0.0.1:9093',
      JWT_SECRET: secret,
      IDEMPOTENCY_SECRET: secret,
      WEBHOOK_SECRET: secret,
      PERSONAL_DATA_KEK: secret,
      PROVIDER_URL: 'http://127.0.0.1:8090',
    };
    const modes = ['command-api', 'query-api', 'projector'] as const;
    const problemsIn = (env: NodeJS.ProcessEnv, mode: (typeof modes)[number]) => {
      const read = loadConfig(env, mode);
      return read.ok ? [] : read.problems;
    };

    test.each(modes)('the %s starts with every engine set', (mode) => {
      const read = loadConfig(whole, mode);
      if (!read.ok) throw new Error(read.problems.join());
      expect(read.config).toMatchObject({
        port: { 'command-api': 8081, 'query-api': 8082, projector: 8083 }[mode],
        eventStoreDbUrl: whole.EVENTSTOREDB_URL,
        mongoUrl: whole.MONGODB_URL,
        kafka: { brokers: ['localhost:9092', '127.0.0.1:9093'], topicPrefix: 'payments' },
        rules: { rateLimit: { perSecond: 1000, burst: 2000 } },
        unauthenticatedRateLimit: { perSecond: 50, burst: 100 },
      });
    });

    test.each(modes)('the %s names every missing setting when nothing is set', (mode) => {
      expect(problemsIn({}, mode)).toEqual([
        `EVENTSTOREDB_URL must be set for the ${mode}`,
        `MONGODB_URL must be set for the ${mode}`,
        ...(mode === 'command-api' ? [expect.stringContaining('PROVIDER_URL must be set')] : []),
        `one of JWT_SECRET, JWT_JWKS_URL, JWT_JWKS_FILE must be set for the ${mode}`,
        'IDEMPOTENCY_SECRET must be set with EventStoreDB, to the same value in every process',
        'WEBHOOK_SECRET must be set with EventStoreDB, to the same value in every process',
        'PERSONAL_DATA_KEK must be set with EventStoreDB, to the same value in every process',
      ]);
    });

    test('a short JWT_SECRET is rejected, with no mere warning', () => {
      expect(problemsIn({ ...whole, JWT_SECRET: 's'.repeat(31) }, 'projector')).toEqual([
        'JWT_SECRET must be at least 32 bytes for the projector',
      ]);
    });
  });

  test.each<[string, NodeJS.ProcessEnv, string[]]>([
    [
      'a setting whose name begins with that of an unreadable one',
      { IDEMPOTENCY_SECRET_FILE: 'absent', IDEMPOTENCY_SECRET_PREVIOUS: 'short' },
      ['IDEMPOTENCY_SECRET_FILE', 'IDEMPOTENCY_SECRET_PREVIOUS'],
    ],
    [
      'a setting whose name ends with that of an unreadable one',
      { WEBHOOK_SECRET_FILE: 'absent', STRIPE_WEBHOOK_SECRET: 'x' },
      ['WEBHOOK_SECRET_FILE', 'STRIPE_WEBHOOK_SECRET'],
    ],
    [
      'a missing secret beside a short one',
      { EVENTSTOREDB_URL: 'esdb://localhost:2113?tls=false', IDEMPOTENCY_SECRET: 'short' },
      ['IDEMPOTENCY_SECRET', 'WEBHOOK_SECRET', 'PERSONAL_DATA_KEK'],
    ],
  ])('%s is listed too', (_what, env, names) => {
    expect(problemsOf(env).map((line) => line.split(' ')[0])).toEqual(names);
  });

  test.each<[string, NodeJS.ProcessEnv]>([
    ['keys that cannot be read', { JWT_SECRET_FILE: 'absent', JWT_ALGORITHMS: 'HS256' }],
    ['keys at an invalid address', { JWT_JWKS_URL: 'x', JWT_ALGORITHMS: 'RS256' }],
    ['an invalid provider', { PROVIDER: 'strip', PROVIDER_TIMEOUT_MS: '25000' }],
  ])('nothing is said of what %s would allow', (_what, env) => {
    expect(problemsOf(env)).toHaveLength(1);
  });

  test('no problem repeats a value, for it may be a secret', () => {
    const text = problemsOf({
      JWT_SECRET: 'hunter2-secret',
      KAFKA_SASL_PASSWORD: 'hunter2',
      JWT_ALGORITHMS: 'hunter2',
      PROVIDER_TOKEN: 'hunter2 hunter2',
      PROVIDER_URL: 'https://hunter2:hunter2@provider.example',
      MONGODB_URL: 'mongodb://hunter2@db/payments',
      IDEMPOTENCY_SECRET: 'hunter2',
      LOG_LEVEL: 'hunter2',
    }).join('\n');
    expect(text.split('\n').length).toBeGreaterThan(3);
    expect(text).not.toContain('hunter2');
  });
});

describe('settings: warnings', () => {
  test.each<[NodeJS.ProcessEnv, string[]]>([
    [{ JWT_SECRET: 'x'.repeat(31) }, ['JWT_SECRET is shorter than 32 bytes']],
    [{ JWT_SECRET: 'x'.repeat(32) }, []],
    [
      { JWT_JWKS_FILE: fileWith('w.json', JSON.stringify({ keys: [publicKey] })) },
      ['JWT_ISSUER', 'JWT_AUDIENCE'].map((name) => `${name} is not set, so it is not checked`),
    ],
  ])('%j warns of %j', (env, expected) => {
    expect(load(env).warnings).toEqual(expected);
  });

  test.each<[NodeJS.ProcessEnv, string]>([
    [{}, 'JWT_MERCHANT_CLAIM is not set, so the merchant is guessed'],
    [{ JWT_MERCHANT_CLAIM: 'org' }, ''],
  ])('keys of an issuer with %j warn: %j', (env, expected) => {
    const issuer = { JWT_ISSUER: 'https://issuer.example', JWT_AUDIENCE: 'payments' };
    const { warnings } = load({ JWT_JWKS_URL: 'https://issuer.example/keys', ...issuer, ...env });
    expect(warnings.map((line) => line.split(':')[0])).toEqual(expected === '' ? [] : [expected]);
  });

  const MISSPELT = {
    MAX_AMMOUNT: 'MAX_AMOUNT',
    ACCEPTED_BRAND: 'ACCEPTED_BRANDS',
    RATE_LIMIT_PER_SECONDS: 'RATE_LIMIT_PER_SECOND',
    DATADIR: 'DATA_DIR',
    POTR: '',
    LOG_LEVAL: 'LOG_LEVEL',
    IDEMPOTENCY_SECRET_FILES: 'IDEMPOTENCY_SECRET_FILE',
  };
  test.each(Object.entries(MISSPELT))('%s, one letter from %s', (name, near) => {
    const expected = near === '' ? [] : [`no setting has the name ${name} (is ${near} meant?)`];
    expect(load({ [name]: 'x' }).warnings).toEqual(expected);
  });

  const OURS =
    'STRIPE_KEY,KAFKA_URL,PROVIDER_NAME,WEBHOOK_URL,RATE_LIMIT_A,PERSONAL_DATA_MASTER,JWT_KEY';
  test.each(OURS.split(','))('%s, which begins as a setting does and is none', (name) => {
    const others = { HOSTNAME: 'x', PATH: 'x', KAFKA: 'x' };
    expect(load({ [name]: 'x', ...others }).warnings).toEqual([`no setting has the name ${name}`]);
  });

  test('several misspelt names are one line, an empty one is none, and a start that is refused shows it too', () => {
    const env = { STRIPE_KEY: 'sk_live_hidden', MAX_AMMOUNT: '5', JWT_KEY: '' };
    const line = 'no setting has the name STRIPE_KEY, MAX_AMMOUNT (is MAX_AMOUNT meant?)';
    expect(load(env).warnings).toEqual([line]);
    expect(problemsOf({ ...env, PROVIDER: 'stripe' })).toEqual([
      'STRIPE_SECRET_KEY must be set with PROVIDER=stripe',
      line,
    ]);
  });
});

describe('settings: MERCHANTS_FILE', () => {
  const merchants = (content: unknown) => ({
    MERCHANTS_FILE: fileWith('merchants.json', JSON.stringify(content)),
  });

  test("each value of a merchant replaces the installation's value", () => {
    const config = load({
      ...merchants({
        m_1: { maxAmount: 500, acceptedBrands: ['VISA'] },
        m_2: { rateLimitPerSecond: 5, merchantReference: 'unique' },
      }),
      RATE_LIMIT_PER_SECOND: '50',
      RATE_LIMIT_BURST: '60',
    });
    expect(config.merchants.get('m_1')).toEqual({
      maxAmount: 500,
      acceptedBrands: ['VISA'],
      merchantReference: 'allow',
      rateLimit: { perSecond: 50, burst: 60 },
    });
    expect(config.merchants.get('m_2')?.rateLimit).toEqual({ perSecond: 5, burst: 10 });
    const kept = { maxAmount: 99_999_999, merchantReference: 'unique' };
    expect(config.merchants.get('m_2')).toMatchObject(kept);
  });

  test('a merchant is found under a composed and a decomposed name', () => {
    const config = load(merchants({ 'cafe\u0301': { maxAmount: 500 } }));
    expect(config.merchants.get('caf\u00e9')?.maxAmount).toBe(500);
  });

  test.each<[unknown, string]>([
    [
      { 'cafe\u0301': {}, 'caf\u00e9': {} },
      'caf\u00e9 stands there twice, composed and decomposed',
    ],
    [[], 'must hold a JSON object with merchant ids as keys'],
    [{ m_1: 5 }, 'm_1 must be an object of settings'],
    [{ m_1: { maxAmount: '5' } }, 'm_1.maxAmount must be a whole number from 1'],
    [{ m_1: { maxAmuont: 5 } }, 'm_1 has unknown fields: maxAmuont'],
    [{ m_1: { acceptedBrands: [] } }, 'm_1.acceptedBrands must be a list of'],
    [{ m_1: { merchantReference: 'x' } }, 'm_1.merchantReference must be allow or'],
    [{ '*': { maxAmount: 5 } }, '* is no merchant: in a token it stands for all'],
    [{ '': { maxAmount: 5 } }, 'has an entry without the id of a merchant'],
    [{ '\u00a0m_1\n': {} }, '"\u00a0m_1\\n" has spaces around the id'],
    [
      { m_1: { rateLimitPerSecond: 5, rateLimitBurst: 0 } },
      'm_1.rateLimitBurst must be at least 1',
    ],
    [{ m_1: { stripeAccount: 'me' } }, 'm_1.stripeAccount must be the id of an'],
  ])('%j is a problem', (content, expected) => {
    expect(problemsOf(merchants(content))).toEqual([
      expect.stringContaining(`MERCHANTS_FILE ${expected}`),
    ]);
  });

  test.each([
    ['{"__proto__":{"maxAmount":100}}', '__proto__ can be no name there'],
    ['{"m_1":{"maxAmount":100},"m_1":{"maxAmount":999999}}', 'm_1 stands there twice'],
    ['{"m_1":{"maxAmount":100},"\\u006d_1" : {}}', 'm_1 stands there twice'],
    ['{"m_1":{"maxAmount":100,"maxAmount":999999}}', 'a field stands there twice'],
  ])('%s is a problem, though the parser takes it', (text, expected) => {
    const problems = problemsOf({ MERCHANTS_FILE: fileWith('merchants.json', text) });
    expect(problems).toEqual([`MERCHANTS_FILE ${expected}`]);
  });

  test('the same field of two merchants, and a text like a name, are no repetition', () => {
    const text =
      '{"m_1":{"acceptedBrands":["VISA","VISA"]},"a\\"m_1\\":{":{"acceptedBrands":["VISA"]}}';
    const config = load({ MERCHANTS_FILE: fileWith('merchants.json', text) });
    expect(config.merchants.get('a"m_1":{')?.acceptedBrands).toEqual(['VISA']);
  });

  describe("a merchant's own account of Stripe", () => {
    const STRIPE = { PROVIDER: 'stripe', STRIPE_SECRET_KEY: 'sk_test_1' };
    const key = (text: string) => {
      const path = fileWith(`key-${text}`, text);
      chmodSync(path, 0o600);
      return path;
    };

    test('is a connected account of the key, or a key of its own', () => {
      const file = merchants({
        m_1: { stripeAccount: 'acct_1' },
        m_2: {
          stripeSecretKeyFile: key('rk_test_2'),
          stripeWebhookSecretFile: key('whsec_12345678'),
        },
        m_3: { maxAmount: 5 },
      });
      const { stripe } = load({ ...STRIPE, ...file });
      expect([...(stripe?.merchants ?? [])]).toEqual([
        ['m_1', { secretKey: 'sk_test_1', account: 'acct_1', webhookSecrets: [] }],
        ['m_2', { secretKey: 'rk_test_2', account: undefined, webhookSecrets: ['whsec_12345678'] }],
      ]);
      // A process that does not talk to Stripe reads no key, though it may have the same file.
      expect(load(file).stripe).toBeUndefined();
    });

    test.each<[object, string]>([
      [
        { stripeAccount: 'acct_1', stripeSecretKeyFile: '/nowhere' },
        'm_1 must not have both stripeAccount and stripeSecretKeyFile',
      ],
      [
        { stripeSecretKeyFile: '/nowhere' },
        'm_1.stripeSecretKeyFile names a file that cannot be read (ENOENT)',
      ],
      [
        { stripeSecretKeyFile: key('pk_test_1') },
        'm_1.stripeSecretKeyFile must hold a secret or restricted key of Stripe',
      ],
      [
        { stripeSecretKeyFile: key('sk_live_1') },
        'm_1.stripeSecretKeyFile must hold a key of the mode of STRIPE_SECRET_KEY, test or live',
      ],
      [
        { stripeAccount: 'acct_1', stripeWebhookSecretFile: '/nowhere' },
        'm_1.stripeWebhookSecretFile must stand beside stripeSecretKeyFile',
      ],
      [
        { stripeSecretKeyFile: key('sk_test_2'), stripeWebhookSecretFile: key('hush') },
        'm_1.stripeWebhookSecretFile must hold a signing secret of Stripe',
      ],
    ])('%j is a problem, and no secret is shown', (own, expected) => {
      const problems = problemsOf({ ...STRIPE, ...merchants({ m_1: own }) }).join('\n');
      expect(problems).toContain(`MERCHANTS_FILE ${expected}`);
      expect(problems).not.toMatch(/sk_live_1|pk_test_1|hush/);
    });
  });
});
