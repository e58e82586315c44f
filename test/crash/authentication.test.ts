/** gaps §21: the process dies while the provider asks for the shopper. */
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import type { CrashPoint } from '../support/crash-points.ts';
import { arm } from '../support/crash-rounds.ts';
import { entriesOfLedger, expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { LAUNCHER, NODE, type Service, startService, unresolvedIn } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const KEY = { 'idempotency-key': 'dies-while-waiting' };
const authentication = { returnUrl: 'https://shop.example/back' };
const card = { ...payment.paymentMethod.card, number: '4000000000003220', authentication };
const BODY = { ...payment, captureNow: true, paymentMethod: { type: 'CARD', card } };

const start = (dataDir: string, env: NodeJS.ProcessEnv): Promise<Service> =>
  startService({
    dataDir,
    env: { LOG_LEVEL: 'silent', RECOVERY_DELAYS_MS: '50,100', CRASH_ARMED: 'later', ...env },
    command: [NODE, LAUNCHER, 'test/support/crashing-main.ts'],
  });

test.each<CrashPoint>([
  'sale: before provider',
  'sale: after provider',
  'sale: before append outcome',
  'sale: after append outcome',
])(
  'dead at %s: the repeat leads the shopper to a page, and money moves once',
  async (point) => {
    const folder = temporaryFolder();
    try {
      await using first = await start(folder.path, { CRASH_AT: point });
      await arm(first);
      await first.post(PAYMENTS, BODY, KEY).catch(() => undefined);
      expect((await first.exited).signal).toBe('SIGKILL');

      await using second = await start(folder.path, {});
      const again = await second.post(PAYMENTS, BODY, KEY);
      expect([again.status, again.json.status]).toEqual([202, 'PENDING']);
      expect(await unresolvedIn(second)).toBe(0);
      const { url } = again.json.nextAction as { url: string };
      const pressed = await fetch(`${url}/authenticate`, { method: 'POST', redirect: 'manual' });
      expect(pressed.status).toBe(303);
      const one = `${PAYMENTS}/${again.json.paymentId}`;
      await until(
        'it has its outcome',
        async () => (await second.get(one)).json.status !== 'PENDING',
      );
      const ended = await second.post(PAYMENTS, BODY, KEY);
      expect([ended.status, ended.json.status]).toEqual([200, 'CAPTURED']);
      second.kill('SIGTERM');
      await second.exited;
      await expectLedgerMatchesLog(folder.path);
      expect(await entriesOfLedger(folder.path)).toHaveLength(1);
    } finally {
      folder.remove();
    }
  },
  60_000,
);
