/**
 * docs/production.md, followed by an operator who has that page alone: the settings, the first payment,
 * a backup and its drill, each command as it stands there. The issuer and Stripe are on loopback.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, test } from '@jest/globals';
import byToken from '../../examples/token.json' with { type: 'json' };
import { httpServer } from '../support/faulty-server.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { blockOf, issuer, paste, settingsOf, shownIn } from '../support/production-page.ts';
import { RELEASE_BEFORE, releaseBefore } from '../support/release-before.ts';
import {
  NODE,
  ROOT,
  type ServiceProcess,
  spawnService,
  untilReady,
} from '../support/service-processes.ts';
import { stripeDouble } from '../support/stripe-double/server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PRODUCTION = readFileSync(join(ROOT, 'docs/production.md'), 'utf8');
const PAGE = 'https://payments.example';
const TYPED = ['rk_live_ofATrial', 'whsec_b2ZBVHJpYWwtb2ZBVHJpYWw='];

/** At the address of the trial, whose doctor has lines about it. */
const onTrial = (block: string, { url }: { url: string }): string =>
  block.replaceAll(PAGE, url).replace('> /dev/null && echo well', '> /dev/null || echo well');

/** An installation by the page up to its settings. */
const installed = async () => {
  const { path: folder, remove } = temporaryFolder();
  const typed = blockOf('folders', folder) + blockOf('secrets', folder);
  expect(await paste(typed, {}, TYPED)).toMatchObject({ code: 0 });
  const own = settingsOf(folder);
  const sso = await issuer(own);
  const keys = await httpServer((_, response) => response.end(sso.jwks()));
  const stripe = await stripeDouble();
  const env: NodeJS.ProcessEnv = { ...own, JWT_JWKS_URL: keys.url, STRIPE_API_URL: stripe.url };
  const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`);
  const file = join(folder, 'etc/payments/payments.env');
  writeFileSync(file, lines.join(''));
  return {
    folder,
    env,
    /** As the file of the settings says now. */
    envNow: (): NodeJS.ProcessEnv => parseEnv(readFileSync(file, 'utf8')),
    token: sso.token,
    rotateIssuer: sso.rotate,
    /** How many payments Stripe has charged. */
    charges: () => stripe.books.all().intents.filter(({ status }) => status === 'succeeded').length,
    [Symbol.asyncDispose]: async () => {
      await keys.close();
      await stripe.close();
      remove();
    },
  };
};

test('the page has at most 2,000 words, and the README links it before its first chapter', () => {
  const words = PRODUCTION.split(/\s+/);
  expect(words.length).toBeLessThanOrEqual(2_000);
  const [first] = readFileSync(join(ROOT, 'README.md'), 'utf8').split(/^## /m);
  expect(first).toContain('(docs/production.md)');
});

/** Those without a name install as root, or ask systemd. */
test('bash takes each block of the page, and a test types each one that has a name', () => {
  const blocks = [...PRODUCTION.matchAll(/^ *```sh(?: (\S+))?\n(.*?)^ *```$/gms)];
  for (const [, name, text] of blocks)
    expect([name, spawnSync('bash', ['-n'], { input: text }).status]).toEqual([name, 0]);
  const untyped = blocks.filter(([, name]) => name === undefined).map(([, , text]) => text);
  const asRoot = ['useradd', 'systemctl'].map((word) => expect.stringContaining(word));
  expect(untyped).toEqual(asRoot);
  const typed = blocks.flatMap(([, name]) => (name === undefined ? [] : [name]));
  expect(typed).toEqual([
    ...['folders', 'secrets', 'settings', 'look', 'payment', 'backup', 'export', 'drill', 'alerts'],
    ...['rotate-idempotency', 'end-idempotency', 'rotate-stripe', 'rotate-seal', 'endpoints'],
    ...['restore', 'open'],
  ]);
});

test('the commands of the page lead to a service with a payment, a backup and a drill that verifies', async () => {
  await using installation = await installed();
  const { folder, env, token } = installation;
  const own = ['idempotency.secret', 'webhook.secret', 'personal.kek'];
  for (const name of [...own, 'stripe.key', 'stripe.webhook'])
    expect(statSync(join(folder, 'etc/payments', name)).mode & 0o777).toBe(0o600);
  const dataDir = env.DATA_DIR ?? '';
  await using service = await spawnService({ dataDir, env });
  await untilReady(service);
  // Ready comes a moment before the banner.
  await until('the banner ends', () =>
    service.stderr().includes('Next:  npx payments doctor --production'),
  );
  expect(service.stderr()).not.toContain('Not for production');
  expect(existsSync(env.SEALING_KEY_FILE ?? '')).toBe(true);

  const PAYMENTS_TOKEN = await token('*', 'ops:admin audit:read');
  const MERCHANT_TOKEN = await token('shop', 'payments:read payments:write');
  const hasPromtool = spawnSync('promtool', ['--version']).error === undefined;
  const blocks = ['look', 'payment', 'backup', 'export', 'drill'];
  if (hasPromtool) blocks.push('alerts');
  const block = blocks.map((name) => onTrial(blockOf(name, folder), service)).join('\n');
  const PAYMENTS_URL = service.url;
  const typed = { PAYMENTS_URL, PAYMENTS_TOKEN, MERCHANT_TOKEN, CARD: 'pm_card_visa' };
  const run = await paste(block, typed);
  expect(run).toMatchObject({ code: 0, printed: shownIn(block) });
  // What the trial has otherwise than the page: Stripe is on loopback, one volume holds all.
  const lines = run.stderr.match(/^payments: not ready for production: .*$/gm);
  expect(lines?.filter((line) => !line.includes('is on the volume of DATA_DIR'))).toEqual([
    'payments: not ready for production: 4 provider: STRIPE_API_URL is not that of Stripe, so a rehearsal takes the payments',
  ]);
});

/** A service on the settings as the file has them now, of the release in a folder. */
const started = async ({ envNow }: Awaited<ReturnType<typeof installed>>, release = ROOT) => {
  const env = envNow();
  const command = [NODE, join(release, 'scripts/launch.cjs'), 'embedded/main.ts'];
  const service = await spawnService({ dataDir: env.DATA_DIR, env, command });
  await untilReady(service);
  return service;
};

const stopped = async (service: ServiceProcess): Promise<void> => {
  service.kill('SIGTERM');
  expect(await service.exited).toMatchObject({ code: 0 });
};

testOfLongRun(
  `upgraded from ${RELEASE_BEFORE}, the disk lost after a backup, every secret rotated: a payment under its key is charged once`,
  async () => {
    await using installation = await installed();
    const { folder, token, charges } = installation;
    const pay = async ({ url }: { url: string }, key: string) => {
      const merchant = await token('shop', 'payments:read payments:write');
      const response = await fetch(`${url}/api/v1/payments`, {
        method: 'POST',
        headers: { authorization: `Bearer ${merchant}`, 'idempotency-key': key },
        body: JSON.stringify(byToken).replace(byToken.paymentMethod.card.token, 'pm_card_visa'),
      });
      const { paymentId } = (await response.json()) as { paymentId?: string };
      return { status: response.status, paymentId };
    };
    const run = async (name: string, service?: { url: string }, typed: string[] = []) => {
      const MERCHANT_TOKEN = await token('shop', 'payments:read webhooks:write');
      const PAYMENTS_TOKEN = await token('*', 'ops:admin audit:read');
      const env = { ...installation.envNow(), PAYMENTS_TOKEN, MERCHANT_TOKEN };
      const page = blockOf(name, folder).replaceAll('beyond-the-copy.txt', '/dev/null');
      const block = service === undefined ? page : onTrial(page, service);
      const given = { ...env, ...(service && { PAYMENTS_URL: service.url }) };
      const pasted = await paste(block, given, typed);
      expect(pasted).toMatchObject({ code: 0, printed: shownIn(block) });
    };

    const earlier = releaseBefore();
    await using older = await started(installation, earlier.path);
    const first = await pay(older, 'first');
    expect(first.status).toBe(200);
    await stopped(older);
    earlier.remove();
    await using upgraded = await started(installation);
    await run('look', upgraded);
    expect(await pay(upgraded, 'first')).toEqual(first);

    await run('backup', upgraded);
    const headFile = `${installation.envNow().SEALING_KEY_FILE}.head`;
    const kept = () => (existsSync(headFile) ? readFileSync(headFile, 'utf8') : '');
    const head = kept();
    expect(await pay(upgraded, 'after')).toMatchObject({ status: 200 });
    await until('the head of the log is kept', () => kept() !== head);
    upgraded.kill('SIGKILL');
    await upgraded.exited;
    rmSync(upgraded.dataDir, { recursive: true });

    await run('restore');
    await using restored = await started(installation);
    expect(await pay(restored, 'after')).toMatchObject({ status: 503 });
    await run('open', restored);
    const again = await pay(restored, 'after');
    expect(again.status).toBe(200);
    expect(charges()).toBe(2);
    const registered = await fetch(`${restored.url}/api/v1/webhook-endpoints`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await token('shop', 'webhooks:write')}` },
      body: JSON.stringify({ url: 'https://shop.example/webhooks' }),
    });
    expect(registered.status).toBe(201);
    await stopped(restored);

    await installation.rotateIssuer();
    // Twice is once: the secret that the log knows is not overwritten.
    for (let times = 0; times < 2; times += 1) await run('rotate-idempotency');
    const typed = ['rk_live_ofAnotherTrial', `${TYPED[1]},whsec_bmV3VHJpYWw=`];
    await run('rotate-stripe', undefined, typed);
    await run('rotate-seal');
    await using rotated = await started(installation);
    expect([await pay(rotated, 'first'), await pay(rotated, 'after')]).toEqual([first, again]);
    expect(charges()).toBe(2);
    await run('endpoints', rotated);
    await run('look', rotated);
    await run('backup', rotated);
    await run('end-idempotency', rotated);
    expect(installation.envNow()).not.toHaveProperty('IDEMPOTENCY_SECRET_PREVIOUS_FILE');
    await stopped(rotated);
    await using ended = await started(installation);
    expect(await pay(ended, 'last')).toMatchObject({ status: 200 });
  },
);
