/**
 * As it was found: the provider stands still with a sale on its way, two persons resolve the sale
 * as declined, and the provider wakes and carries it out. Over HTTP, with real processes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, expect, test } from '@jest/globals';
import { SECRET, signToken } from '../support/in-process.ts';
import {
  cleanEnv,
  LAUNCHER,
  metricOf,
  NODE,
  ROOT,
  type Service,
  startService,
} from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const folder = temporaryFolder();
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  folder.remove();
});

const startProvider = async () => {
  const env = { ...cleanEnv(), PORT: '0', DATA_DIR: join(folder.path, 'provider') };
  const child = spawn(NODE, [LAUNCHER, 'provider-simulator/main.ts'], {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.push(child);
  let out = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      out += data;
    });
  const listens = /listens on (http:\S+)$/m;
  await until('the provider listens', () => listens.test(out));
  return { child, url: listens.exec(out)?.[1] ?? '' };
};

const SALE = {
  amount: 2500,
  currency: 'USD',
  captureNow: true,
  paymentMethod: {
    type: 'CARD',
    card: { number: '4242424242424242', holderName: 'A', expiryMonth: '12', expiryYear: '2030' },
  },
};

const authorization = async (sub: string) => ({
  authorization: `Bearer ${await signToken({ merchant_id: '*', sub, scope: 'ops:admin ops:resolve audit:read' })}`,
});

const listOf = async (service: Service) =>
  (await service.get('/ops/v1/unresolved', await authorization('jane'))).json as unknown as {
    unresolved: { paymentId: string; state: string }[];
  };

test('resolved by hand as declined, then charged: listed as contradicted, with metric and error line, over a restart', async () => {
  const provider = await startProvider();
  const env = {
    PROVIDER_URL: provider.url,
    PROVIDER_TIMEOUT_MS: '500',
    RECOVERY_DELAYS_MS: Array(50).fill(200).join(),
    JWT_SECRET: SECRET,
  };
  const dataDir = join(folder.path, 'data');
  const merchant = {
    authorization: `Bearer ${await signToken({ merchant_id: 'm_demo', sub: 'shop' })}`,
  };
  const open = () => startService({ env, dataDir });
  let paymentId = '';
  {
    await using service = await open();
    expect((await service.post('/api/v1/payments', SALE, merchant)).status).toBe(200);
    provider.child.kill('SIGSTOP');
    const lost = await service.post('/api/v1/payments', SALE, merchant);
    expect(lost.status).toBe(503);
    paymentId = lost.headers.get('location')?.split('/').at(-1) ?? '';
    const say = async (sub: string, more: object) =>
      service.post(
        `/ops/v1/payments/${paymentId}/resolve`,
        { outcome: 'declined', evidence: 'the provider is down', ...more },
        await authorization(sub),
      );

    expect((await say('jane', { withoutFence: true })).status).toBe(202);
    expect((await say('john', { withoutFence: true })).json).toMatchObject({ status: 'FAILED' });
    expect(await metricOf(service, 'payments_unconfirmed')).toBe(1);
    provider.child.kill('SIGCONT');
    await until(
      'the contradiction is counted',
      async () => (await metricOf(service, 'payments_contradicted')) === 1,
    );
    expect((await listOf(service)).unresolved).toMatchObject([
      { paymentId, state: 'CONTRADICTED' },
    ]);
    // The log is written beside the requests, a moment later.
    await until('the error line is written', () =>
      /"level":"error".*contradicts what was resolved by hand/.test(service.stdout()),
    );
    const shown = await service.get(`/api/v1/payments/${paymentId}`, merchant);
    expect(shown.json.status).toBe('FAILED');
    const reconciled = await service.post(
      '/audit/v1/reconcile',
      undefined,
      await authorization('jane'),
    );
    expect(reconciled.json).toMatchObject({
      differences: [{ kind: 'OUTCOME_DIFFERS', paymentId }],
    });
  }
  await using again = await open();
  await until(
    'the contradiction is counted after the restart',
    async () => (await metricOf(again, 'payments_contradicted')) === 1,
  );
  expect((await listOf(again)).unresolved).toMatchObject([{ paymentId, state: 'CONTRADICTED' }]);
});
