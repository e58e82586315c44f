/** `payments doctor --production` names each line of docs/production.md that the service lacks. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { walkProduction } from '../../cli/doctor-production.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { runCli } from '../support/cli.ts';
import { blockOf, paste, settingsOf } from '../support/production-page.ts';
import { startInProcess } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const KEYS = ['rk_live_ofATrial', 'whsec_b2ZBVHJpYWwtb2ZBVHJpYWw='];
/** The data on another volume than all else of this machine: it is not there. */
const page: NodeJS.ProcessEnv = { ...settingsOf(folder.path), DATA_DIR: '/nowhere/payments' };
beforeAll(async () => {
  await paste(blockOf('folders', folder.path) + blockOf('secrets', folder.path), {}, KEYS);
});

/** What is missing at an address without a service, by the settings that one would have in effect. */
const missingWith = async (changed: NodeJS.ProcessEnv, url = 'http://127.0.0.1:1') => {
  const read = loadConfig({ ...page, ...changed });
  if (!read.ok) throw new Error(read.problems.join('; '));
  const found = await walkProduction(url, read.config.effective);
  return found.flatMap(({ section, missing }) => missing.map((line) => `${section}: ${line}`));
};

test('nothing is missing with the settings of the page', async () => {
  expect(await missingWith({})).toEqual([]);
});

describe('one setting of the page less is one line', () => {
  test.each([
    ['DATA_DIR', {}, '1 shape'],
    ['IDEMPOTENCY_SECRET_FILE', {}, '2 secrets'],
    ['WEBHOOK_SECRET_FILE', {}, '2 secrets'],
    ['SEALING_KEY_FILE', {}, '2 secrets'],
    ['JWT_JWKS_URL', {}, '3 tokens'],
    ['JWT_ISSUER', { JWT_JWKS_URL: '', JWT_SECRET: 's'.repeat(32) }, '3 tokens'],
    ['JWT_MERCHANT_CLAIM', {}, '3 tokens'],
    ['STRIPE_WEBHOOK_SECRET_FILE', {}, '4 provider'],
    ['RATE_LIMIT_PER_SECOND', {}, '5 settings'],
    ['RATE_LIMIT_UNAUTHENTICATED_PER_SECOND', {}, '5 settings'],
  ])('%s', async (name, changed: NodeJS.ProcessEnv, section) => {
    const missing = await missingWith({ ...changed, [name]: undefined });
    const [one] = missing.filter((line) => line.includes(name));
    expect(one).toMatch(new RegExp(`^${section}: ${name} `));
    expect(missing).toHaveLength(Object.keys(changed).length === 0 ? 1 : 2);
  });
});

test.each([
  [{ SEALING_KEY_FILE: `${page.DATA_DIR}/sealing-key.pem` }, '2 secrets: SEALING_KEY_FILE is on'],
  [{ SEALING_KEY_FILE: '/nowhere/a/../payments/key.pem' }, '2 secrets: SEALING_KEY_FILE is on'],
  [{ SEALED_HEAD_FILE: `${page.DATA_DIR}/head` }, '2 secrets: SEALED_HEAD_FILE is on'],
  [
    { STRIPE_API_URL: 'http://127.0.0.1:12110' },
    '4 provider: STRIPE_API_URL is not that of Stripe',
  ],
  [{ SEAL_INTERVAL_MS: '1728000000' }, '5 settings: SEAL_INTERVAL_MS is above a day'],
  [{ RATE_LIMIT_PER_SECOND: '1000000' }, '5 settings: RATE_LIMIT_PER_SECOND is above 10000'],
  [{ HOST: '0.0.0.0' }, '7 TLS: HOST is no loopback address'],
  [{ RECONCILE_INTERVAL_MS: '0' }, '4 provider: RECONCILE_INTERVAL_MS is 0'],
  [{ VERIFY_INTERVAL_MS: '0' }, '5 settings: VERIFY_INTERVAL_MS is 0'],
  [{ LOG_LEVEL: 'debug' }, '5 settings: LOG_LEVEL is to be'],
  [{ PLAINTEXT_ALLOWED: 'kafka' }, '7 TLS: PLAINTEXT_ALLOWED is set'],
])('%j is one line', async (changed, line) => {
  expect(await missingWith(changed)).toEqual([expect.stringContaining(line)]);
});

test('a key in the data folder by a link, or beside it on its volume, is one line', async () => {
  const data = join(folder.path, 'data');
  mkdirSync(data);
  symlinkSync(data, join(folder.path, 'link'));
  for (const file of ['data/key.pem', 'link/key.pem', 'key.pem'])
    expect(
      await missingWith({ DATA_DIR: `${data}/`, SEALING_KEY_FILE: join(folder.path, file) }),
    ).toEqual(['2 secrets: SEALING_KEY_FILE is on the volume of DATA_DIR, and belongs on another']);
});

test.each([
  '0.0.0.0/0,::/0',
  '10.0.0.0/8, 169.254.0.0/16',
  '127.0.0.0/8',
  'fe80::/64',
  '::1/128',
  '10.0.0.0/7',
  '2000::/3',
])('webhooks to %s are one line', async (WEBHOOK_ALLOWED_NETWORKS) => {
  expect(await missingWith({ WEBHOOK_ALLOWED_NETWORKS })).toEqual([
    expect.stringContaining('5 settings: WEBHOOK_ALLOWED_NETWORKS lets merchants reach'),
  ]);
});

test('webhooks to a network of receivers are no line', async () => {
  expect(
    await missingWith({ WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8,192.168.1.0/24,fd00::/32' }),
  ).toEqual([]);
});

test('an address without TLS on another machine is one line', async () => {
  expect(await missingWith({}, 'http://payments.invalid')).toEqual([
    '7 TLS: the service was reached without TLS from another machine',
  ]);
});

test('against the service of `npm start` it names what is missing, exit code 1, and what a person sees to', async () => {
  await using service = await startInProcess();
  const env = { DATA_DIR: service.dataDir, PORT: String(service.port) };
  const walked = await runCli(['doctor', '--production'], env);
  expect(walked.code).toBe(1);
  expect(walked.stderr).toContain('4 provider: PROVIDER is the simulator');
  expect(walked.stdout).toMatch(/^3 tokens +missing: JWT_JWKS_URL is not set/m);
  expect(walked.stdout).toMatch(/^9 backups +yours to see to: /m);
  expect(await runCli(['doctor'], env)).toMatchObject({ code: 0 });
  const asJson = await runCli(['doctor', '--production', '--format', 'json'], env);
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    ok: false,
    production: expect.arrayContaining([{ section: '5 settings', missing: expect.any(Array) }]),
  });
});
