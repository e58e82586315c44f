/** The commands of an operator, run against a started service (docs/operations.md). */
import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { VERSION } from '../../shared/runtime/version.ts';
import { expectError, expectOutput, runCli } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { payment, SECRET, startInProcess } from '../support/service-in-process.ts';
import { stripeDouble } from '../support/stripe-double/server.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PASSWORD = 'a-password-that-must-not-be-seen--';

// It ends before its folder does.
afterAll(() => service[Symbol.asyncDispose]());
const folder = folderOfTests();
const dataDir = join(folder, 'data');
const PORT = String(await freePort());
const env = { DATA_DIR: dataDir, PORT, JWT_SECRET: SECRET, LOG_LEVEL: 'warn' };
const service = await startInProcess({ dataDir, env });
for (let n = 0; n < 3; n += 1) await service.post('/api/v1/payments', payment());
const cli = (args: readonly string[], more: Record<string, string> = {}) =>
  runCli(args, { ...env, ...more });

test('payments projections: status shows how far the read models are, rebuild fills them again', async () => {
  const [unconfirmed, rebuilt] = await Promise.all([
    cli(['projections', 'rebuild']),
    cli(['projections', 'rebuild', '--yes']),
  ]);
  expectError(unconfirmed, 2, 'rebuild --yes');
  expectOutput(
    rebuilt,
    /^6 events in [\d.]+ s \([\d,]+\/s\), 3 documents\nchecksum old = new: (\w+) = \1\n$/,
  );
  // Plain lines in a pipe, with rate and time left: one where it is over before the next is due.
  expect(rebuilt.stderr).toMatch(/^(rebuild .*\n)*rebuild 100% {2}6\/6 {2}[\d,]+\/s\n$/);
  const [shown, asJson] = await Promise.all([
    cli(['projections', 'status']),
    cli(['projections', 'status', '--format', 'json']),
  ]);
  expectOutput(
    shown,
    /^payments +running +6 +6 +0 events, 0\.0 s +0\nrebuild done \S+: 6\/6 events$/m,
  );
  expect(JSON.parse(asJson.stdout)).toMatchObject([{ state: 'running', rebuild: { done: 6 } }]);
});

describe('payments doctor', () => {
  test('shows what is in effect in the service, not in the shell, and changes nothing', async () => {
    const before = readdirSync(join(folder, 'data')).sort();
    // The service has none of these settings.
    const other = { MAX_AMOUNT: '5', PROVIDER_URL: 'http://localhost:1', LOG_LEVEL: '' };
    const { code, stdout, stderr } = await cli(['doctor'], other);
    expect([code, stderr]).toEqual([0, expect.stringContaining('payments projections status')]);
    expect(stdout).toMatch(/^Service {2}http:\S+ {2}running$/m);
    expect(stdout).toContain(`\n  payments ${VERSION}\n`);
    expect(stdout).toMatch(/^Settings in effect there$/m);
    expect(stdout).toMatch(/^PORT +\d+ +environment$/m);
    expect(stdout).toMatch(/^MAX_AMOUNT +99999999 +default$/m);
    expect(stdout).toMatch(/^LOG_LEVEL +warn +environment$/m);
    expect(stdout).toMatch(/^JWT_SECRET +hidden \(\d+ bytes\) +environment$/m);
    expect(stdout).toMatch(/^this shell has other values of: PROVIDER_URL, MAX_AMOUNT$/m);
    expect(stdout).toMatch(/writable, held by a running service, [\d.]+ \wB free$/m);
    expect(stdout).toMatch(/^event store +SQLite, events\.sqlite +up$/m);
    expect(stdout).toMatch(/^provider +in the service +up$/m);
    expect(stdout).toMatch(/^ {2}provider: simulated, moves no money$/m);
    expect(stdout).not.toContain(SECRET);
    expect(readdirSync(join(folder, 'data')).sort()).toEqual(before);
  });

  test('a service that is stopped is a finding, with the settings of this shell', async () => {
    const stopped = { PORT: String(await freePort()), DATA_DIR: join(folder, 'none') };
    const { code, stdout, stderr } = await cli(['doctor'], stopped);
    expect([code, stderr]).toEqual([1, expect.stringContaining('the service is stopped')]);
    expect(stdout).toMatch(/^Service {2}http:\S+ {2}stopped$/m);
    expect(stdout).toMatch(/^Settings of this shell$/m);
    expect(existsSync(stopped.DATA_DIR)).toBe(false);
  });

  test('without a token for the service it says so, and shows the shell alone', async () => {
    const { code, stdout, stderr } = await cli(['doctor'], {
      JWT_SECRET: 'another secret of the tests, 32 bytes long at least',
    });
    expect([code, stderr]).toEqual([1, expect.stringContaining('could not be read')]);
    expect(stdout).toMatch(/its settings are not known: UNAUTHORIZED/);
    expect(stdout).toMatch(/^Settings of this shell$/m);
  });

  test('names the likely cause for each engine that a stopped service cannot use, and no secret', async () => {
    const wrong = {
      PORT: String(await freePort()),
      DATA_DIR: join(folder, 'nothing-here'),
      EVENTSTOREDB_URL: `esdb://admin:${PASSWORD}@127.0.0.1:1?tls=false`,
      MONGODB_URL: `mongodb://u:${PASSWORD}@no-such-host.invalid/payments?tls=true`,
      // It listens, and is no Kafka.
      KAFKA_BROKERS: `127.0.0.1:${env.PORT}`,
      PROVIDER_URL: service.url,
      PROVIDER_TOKEN: PASSWORD,
      IDEMPOTENCY_SECRET: PASSWORD,
      WEBHOOK_SECRET: PASSWORD,
      PERSONAL_DATA_KEK: PASSWORD,
    };
    const { code, stdout, stderr } = await cli(['doctor', '--format', 'json'], wrong);
    const { engines, dataFolder, service: found } = JSON.parse(stdout);
    expect(found).toMatchObject({ state: 'stopped' });
    expect(engines).toEqual([
      {
        engine: 'event store',
        place: 'esdb://***@127.0.0.1:1?tls=false',
        state: 'down',
        fault: true,
        cause: expect.stringContaining('nothing listens there'),
      },
      {
        engine: 'read models',
        place: 'mongodb://***@no-such-host.invalid/payments?tls=true',
        state: 'down',
        fault: true,
        cause: expect.stringMatching(
          /no host has this name|names cannot be looked up|no connection in time/,
        ),
      },
      expect.objectContaining({
        engine: 'Kafka',
        state: 'down',
        cause: expect.stringContaining('is this the listener that KAFKA_TLS'),
      }),
      expect.objectContaining({
        engine: 'provider',
        state: 'down',
        cause: expect.stringContaining('is PROVIDER_TOKEN its token'),
      }),
    ]);
    expect(dataFolder).toMatchObject({ state: 'not there yet', held: false, files: [] });
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('event store, read models, Kafka, provider cannot be used'),
    ]);
    expect(stdout + stderr).not.toContain(PASSWORD);
  });

  test('a stopped service with Stripe: asks Stripe with its key, and says whether money moves', async () => {
    const stripe = await stripeDouble();
    const base = {
      PORT: String(await freePort()),
      DATA_DIR: join(folder, 'no-stripe-yet'),
      PROVIDER: 'stripe',
    };
    const providerWith = async (more: Record<string, string>) => {
      const { stdout } = await cli(['doctor', '--format', 'json'], { ...base, ...more });
      return JSON.parse(stdout).engines.at(-1);
    };
    try {
      const test = { STRIPE_SECRET_KEY: 'sk_test_doctor', STRIPE_API_URL: stripe.url };
      expect(await providerWith(test)).toEqual({
        engine: 'provider',
        place: stripe.url,
        state: 'up',
        fault: false,
        cause: 'Stripe in test mode, moves no money',
      });
      // The first request asks for Stripe's clock alone.
      for (let request = 0; request < 2; request += 1) stripe.plan('list', '401');
      expect(await providerWith(test)).toMatchObject({
        state: 'down',
        cause: expect.stringContaining('not rolled'),
      });
      const live = {
        STRIPE_SECRET_KEY: 'sk_live_doctor',
        STRIPE_LIVE: 'true',
        STRIPE_API_URL: 'http://127.0.0.1:1',
      };
      expect(await providerWith(live)).toMatchObject({
        place: 'http://127.0.0.1:1',
        state: 'down',
        fault: true,
      });
    } finally {
      await stripe.close();
    }
  });

  test('a service that fills its read models has no fault', async () => {
    await using filling = await startInProcess({
      env: { JWT_SECRET: SECRET },
      wrappers: {
        store: (own) => ({
          ...own,
          subscribe: async function* (...from) {
            for await (const item of own.subscribe(...from))
              if (item.kind !== 'caught-up') yield item;
          },
        }),
      },
    });
    await filling.post('/api/v1/payments', payment());
    const there = { PAYMENTS_URL: filling.url };
    const { code, stdout } = await cli(['doctor'], there);
    expect(stdout).toMatch(/^read models +SQLite, read-models\.sqlite +catching-up$/m);
    expect(code).toBe(0);
  });

  test('sees what an alert sees, says what it left out, and names a misspelt setting', async () => {
    const seal = join(folder, 'seal');
    mkdirSync(seal);
    const own = { SEALING_KEY_FILE: join(seal, 'key.pem'), MAX_AMMOUNT: '5', JWT_SECRET: SECRET };
    await using watched = await startInProcess({ env: own });
    rmSync(seal, { recursive: true });
    await watched.post('/api/v1/payments', payment());
    const metrics = async () => (await fetch(`${watched.url}/metrics`)).text();
    await until('the head is not kept', async () =>
      /^payments_sealed_head_unkept_seconds (?!0$)/m.test(await metrics()),
    );
    // As at the address of a gateway.
    const PAYMENTS_URL = watched.url.replace('127.0.0.1', '0.0.0.0');
    const { code, stdout, stderr } = await cli(['doctor'], { PAYMENTS_URL });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^payments: SEALED_HEAD_FILE cannot be written$/m),
    ]);
    expect(stdout).toMatch(/^problem: SEALED_HEAD_FILE cannot be written$/m);
    expect(stdout).toMatch(
      /^warning: no setting has the name MAX_AMMOUNT \(is MAX_AMOUNT meant\?\)$/m,
    );
    expect(stdout).toMatch(/^not looked at: the data folder: ask on its machine/m);
    expect(stderr).not.toContain('the data folder');
  });

  test('reports settings that no process would start with: exit code 1', async () => {
    const { code, stdout } = await cli(['doctor'], { MAX_AMOUNT: 'much' });
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining('problem: MAX_AMOUNT must be a whole number'),
    ]);
  });
});

test('payments backup copies every file, for its owner alone, and replaces nothing', async () => {
  const target = join(folder, 'copies', 'first');
  const made = await cli(['backup', target, '--format', 'json']);
  expect([made.code, JSON.parse(made.stdout).events]).toEqual([0, 6]);
  const files = readdirSync(target).sort();
  expect(files).toEqual([
    'events.sqlite',
    'idempotency.secret',
    'provider-ledger.sqlite',
    'sealing-key.pem',
    'webhook.secret',
  ]);
  expect(files.map((name) => statSync(join(target, name)).mode & 0o777)).toEqual(
    files.map(() => 0o600),
  );
  expect(statSync(target).mode & 0o777).toBe(0o700);
  expect(readdirSync(join(folder, 'copies'))).toEqual(['first']);
  const other = join(folder, 'copies', 'other');
  const { stderr } = await cli(['backup', other]);
  expect(stderr).toContain(`then payments restore ${other}\n`);
  expect(stderr).toContain('secrets (idempotency.secret, webhook.secret, sealing-key.pem)');
  const found = await cli(['doctor', '--format', 'json']);
  const { lastBackupAt } = JSON.parse(found.stdout).dataFolder;
  expect(Math.abs(Date.parse(lastBackupAt) - Date.now())).toBeLessThan(60_000);
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  expect(Number(/^payments_backup_age_seconds (.*)$/m.exec(metrics)?.[1])).toBeLessThan(60);
  const [again, nothing] = await Promise.all([
    cli(['backup', target]),
    cli(['backup', join(folder, 'second')], { DATA_DIR: folder }),
  ]);
  expectError(again, 1, 'replaces nothing');
  expectError(nothing, 1, 'holds no events');
});
