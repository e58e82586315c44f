/** docs/settings.md, PLAINTEXT_ALLOWED: no engine on another host without TLS. */
import { expect, test } from '@jest/globals';
import { loadConfig } from '../../shared/runtime/load-config.ts';

const problemsOf = (env: NodeJS.ProcessEnv): string[] => {
  const read = loadConfig({
    IDEMPOTENCY_SECRET: 's'.repeat(32),
    WEBHOOK_SECRET: 's'.repeat(32),
    PERSONAL_DATA_KEK: 's'.repeat(32),
    ...env,
  });
  return read.ok ? [] : read.problems;
};
const issuer = { JWT_ISSUER: 'i', JWT_AUDIENCE: 'a' };

test.each<[NodeJS.ProcessEnv, string]>([
  [{ EVENTSTOREDB_URL: 'esdb://events.example:2113?tls=false' }, 'eventstoredb'],
  [{ EVENTSTOREDB_URL: 'esdb://u:p@127.0.0.1:2113,events.example?Tls=false' }, 'eventstoredb'],
  [{ MONGODB_URL: 'mongodb://u:p@models.example/payments' }, 'mongodb'],
  [{ MONGODB_URL: 'mongodb://localhost,models.example:27017/payments?tls=false' }, 'mongodb'],
  [{ MONGODB_URL: 'mongodb+srv://models.example/payments?ssl=false' }, 'mongodb'],
  [{ KAFKA_BROKERS: 'localhost:9092,broker.example:9092' }, 'kafka'],
  [{ JWT_JWKS_URL: 'http://issuer.example/keys', ...issuer }, 'jwks'],
])('%j is refused, unless PLAINTEXT_ALLOWED names the engine', (env, engine) => {
  const [setting = ''] = Object.keys(env);
  expect(problemsOf(env)).toEqual([
    expect.stringMatching(
      new RegExp(`^${setting} must use TLS .*, or set PLAINTEXT_ALLOWED=${engine}$`),
    ),
  ]);
  expect(problemsOf({ ...env, PLAINTEXT_ALLOWED: `mongodb,${engine}` })).toEqual([]);
  const others = ['eventstoredb', 'mongodb', 'kafka', 'jwks'].filter((name) => name !== engine);
  expect(problemsOf({ ...env, PLAINTEXT_ALLOWED: others.join() })).toHaveLength(1);
});

test.each<NodeJS.ProcessEnv>([
  { EVENTSTOREDB_URL: 'esdb://u:p@events.example:2113' },
  { EVENTSTOREDB_URL: 'esdb://127.0.0.1:2113,localhost:2114?tls=false' },
  { MONGODB_URL: 'mongodb://models.example/payments?replicaSet=rs0&tls=true' },
  { MONGODB_URL: 'mongodb+srv://models.example/payments' },
  { MONGODB_URL: 'mongodb://u:p@[::1]:27017/payments' },
  { MONGODB_URL: 'mongodb://%2Ftmp%2Fmongodb.sock/payments' },
  { KAFKA_BROKERS: 'broker.example:9093', KAFKA_TLS: 'true' },
  { KAFKA_BROKERS: 'localhost:9092,[::1]:9092' },
  { JWT_JWKS_URL: 'http://localhost:8080/keys', ...issuer },
  { JWT_JWKS_URL: 'https://issuer.example/keys', ...issuer },
])('%j is taken: it uses TLS, or stays on this machine', (env) => {
  expect(problemsOf(env)).toEqual([]);
});

test("Kafka's login is whole or absent, and a list of authorities needs TLS", () => {
  const KAFKA_BROKERS = 'localhost:9092';
  expect(problemsOf({ KAFKA_BROKERS, KAFKA_SASL_USERNAME: 'u' })).toEqual([
    "KAFKA_SASL_MECHANISM, KAFKA_SASL_PASSWORD must be set with the other settings of Kafka's login",
  ]);
  expect(problemsOf({ KAFKA_BROKERS, KAFKA_CA_FILE: 'package.json' })).toEqual([
    'KAFKA_TLS must be true with KAFKA_CA_FILE',
    'KAFKA_CA_FILE must name a file with certificates in PEM',
  ]);
  expect(problemsOf({ KAFKA_SASL_MECHANISM: 'OAUTH' })).toEqual([
    'KAFKA_SASL_MECHANISM must be one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512',
  ]);
});
