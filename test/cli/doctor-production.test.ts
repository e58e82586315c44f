/** `payments doctor --production` names each line of docs/production.md that the service lacks. */
import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { walkProduction } from '../../cli/doctor-production.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { runCli } from '../support/cli.ts';
import { blockOf, paste, settingsOf } from '../support/production-page.ts';
import { startInProcess } from '../support/service-in-process.ts';
import { folderOfTests } from '../support/temporary-folder.ts';

const folder = folderOfTests();

const KEYS = ['rk_live_ofATrial', 'whsec_b2ZBVHJpYWwtb2ZBVHJpYWw='];
/** The data on another volume than all else of this machine: it is not there. */
const page: NodeJS.ProcessEnv = { ...settingsOf(folder), DATA_DIR: '/nowhere/payments' };
beforeAll(async () => {
  await paste(blockOf('folders', folder) + blockOf('secrets', folder), {}, KEYS);
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

const NO_ISSUER = { JWT_ISSUER: undefined, JWT_JWKS_URL: '', JWT_SECRET: 's'.repeat(32) };
const TOO_WIDE = [
  '0.0.0.0/0,::/0',
  '10.0.0.0/8, 169.254.0.0/16',
  '127.0.0.0/8',
  'fe80::/64',
  '::1/128',
  '10.0.0.0/7',
  '2000::/3',
];
const WEBHOOKS = '5 settings: WEBHOOK_ALLOWED_NETWORKS lets merchants reach';

type Row = [changed: NodeJS.ProcessEnv, ...lines: string[]];

test.each<Row>([
  [{ DATA_DIR: undefined }, '1 shape: DATA_DIR '],
  [{ IDEMPOTENCY_SECRET_FILE: undefined }, '2 secrets: IDEMPOTENCY_SECRET_FILE '],
  [{ WEBHOOK_SECRET_FILE: undefined }, '2 secrets: WEBHOOK_SECRET_FILE '],
  [{ PERSONAL_DATA_KEK_FILE: undefined }, '2 secrets: PERSONAL_DATA_KEK_FILE '],
  [{ SEALING_KEY_FILE: undefined }, '2 secrets: SEALING_KEY_FILE '],
  [{ JWT_JWKS_URL: undefined }, '3 tokens: JWT_JWKS_URL '],
  [NO_ISSUER, '3 tokens: JWT_JWKS_URL ', '3 tokens: JWT_ISSUER '],
  [{ JWT_MERCHANT_CLAIM: undefined }, '3 tokens: JWT_MERCHANT_CLAIM '],
  [{ STRIPE_WEBHOOK_SECRET_FILE: undefined }, '4 provider: STRIPE_WEBHOOK_SECRET_FILE '],
  [{ RATE_LIMIT_PER_SECOND: undefined }, '5 settings: RATE_LIMIT_PER_SECOND '],
  [
    { RATE_LIMIT_UNAUTHENTICATED_PER_SECOND: undefined },
    '5 settings: RATE_LIMIT_UNAUTHENTICATED_PER_SECOND ',
  ],
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
  ...TOO_WIDE.map((one): Row => [{ WEBHOOK_ALLOWED_NETWORKS: one }, WEBHOOKS]),
  [{ WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8,192.168.1.0/24,fd00::/32' }],
])('with %j instead these lines are missing: %s', async (changed, ...lines) => {
  expect(await missingWith(changed)).toEqual(lines.map((line) => expect.stringContaining(line)));
});

test('a key in the data folder by a link, or beside it on its volume, is one line', async () => {
  const data = join(folder, 'data');
  mkdirSync(data);
  symlinkSync(data, join(folder, 'link'));
  for (const file of ['data/key.pem', 'link/key.pem', 'key.pem'])
    expect(
      await missingWith({ DATA_DIR: `${data}/`, SEALING_KEY_FILE: join(folder, file) }),
    ).toEqual(['2 secrets: SEALING_KEY_FILE is on the volume of DATA_DIR, and belongs on another']);
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
