/** The settings in effect, as an operator is shown them: values, never descriptions, and no secret. */
import { describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../shared/runtime/load-config.ts';

const effectiveOf = (env: Record<string, string>) => {
  const read = loadConfig(env);
  if (!read.ok) throw new Error(read.problems.join('; '));
  return read.config.effective;
};
const valuesOf = (env: Record<string, string>): Record<string, string> =>
  Object.fromEntries(effectiveOf(env).map(({ name, value }) => [name, value]));

describe('settings in effect', () => {
  test('a default is a value or "not set", never a description', () => {
    const described = effectiveOf({ DATA_DIR: '/data' }).filter(
      ({ value }) =>
        /\s|^none$/.test(value) && value !== 'not set' && !/^hidden \(in \/\S+\)$/.test(value),
    );
    expect(described).toEqual([]);
  });

  test('defaults that others decide are those that the process works with', () => {
    expect(valuesOf({ RATE_LIMIT_PER_SECOND: '50', DATA_DIR: '/data' })).toMatchObject({
      PORT: '8080',
      RATE_LIMIT_BURST: '100',
      DATA_DIR: '/data',
      IDEMPOTENCY_SECRET: 'hidden (in /data/idempotency.secret)',
      WEBHOOK_SECRET: 'hidden (in /data/webhook.secret)',
      PERSONAL_DATA_KEK: 'hidden (in /data/personal.kek)',
      RECONCILE_INTERVAL_MS: '3600000',
      JWT_SECRET: 'not set',
    });
    const secret = 'a shared secret of the tests, 32 bytes long at least';
    expect(valuesOf({ JWT_SECRET: secret })).toMatchObject({ JWT_ALGORITHMS: 'HS256' });
  });

  test('no secret and no password of an address is shown', () => {
    const secret = 'a-secret-that-may-not-be-seen----';
    const values = valuesOf({
      JWT_SECRET: secret,
      IDEMPOTENCY_SECRET: secret,
      WEBHOOK_SECRET: secret,
      PERSONAL_DATA_KEK: secret,
      PERSONAL_DATA_PREVIOUS_KEK: secret,
      PROVIDER_URL: 'http://localhost:1',
      PROVIDER_TOKEN: secret,
      EVENTSTOREDB_URL: `esdb://admin:${secret}@127.0.0.1:2113?tls=false`,
      MONGODB_URL: `mongodb://u:${secret}@127.0.0.1/payments`,
    });
    expect(JSON.stringify(values)).not.toContain(secret);
    expect(values).toMatchObject({
      EVENTSTOREDB_URL: 'esdb://***@127.0.0.1:2113?tls=false',
      JWT_SECRET: 'hidden (33 bytes)',
    });
  });
});
