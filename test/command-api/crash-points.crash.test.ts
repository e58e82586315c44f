/** A process ends at every await of create, capture, void, refund, recovery and projection. */
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import {
  APPROVER,
  CRASH_POINTS,
  type CrashPoint,
  WORD_CRASH_POINTS,
} from '../support/crash-points.ts';
import { expectDead, startDying, surviveCrashes } from '../support/crash-rounds.ts';
import { expectLedgerMatchesLog } from '../support/ledger-and-log.ts';
import { shareOf, testOfLongRun } from '../support/long-run-share.ts';
import { unresolvedIn } from '../support/service-client.ts';
import { SECRET, signToken } from '../support/service-in-process.ts';
import type { Service } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const RESPONSE_LOST = '4000000000004236';
const { card } = payment.paymentMethod;
const sale = {
  ...payment,
  captureNow: true,
  paymentMethod: { type: 'CARD', card: { ...card, number: RESPONSE_LOST } },
};

const start = (dataDir: string, env: NodeJS.ProcessEnv): Promise<Service> =>
  startDying(dataDir, { JWT_SECRET: SECRET, ...env });

const SILENT = { LOOK_UPS: 'none' };

const wordOf = async (service: Service, sub: string, paymentId: string): Promise<number> => {
  const token = await signToken({ merchant_id: '*', sub, scope: 'ops:admin ops:resolve' });
  const word = { outcome: 'approved', evidence: 'the statement of the provider' };
  const path = `/ops/v1/payments/${paymentId}/resolve`;
  const { status } = await service.post(path, word, { authorization: `Bearer ${token}` });
  return status;
};

/** Both words, one after the other; a service that dies gives no more answers. */
const bothWords = async (service: Service, paymentId: string): Promise<void> => {
  for (const sub of ['jane', APPROVER]) {
    await wordOf(service, sub, paymentId).catch(() => undefined);
  }
};

/** The types of the events of a payment, in their order. */
const typesOf = async (service: Service, paymentId: string): Promise<string[]> => {
  const token = await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' });
  const path = `/audit/v1/payments/${paymentId}/events`;
  const { json } = await service.get(path, { authorization: `Bearer ${token}` });
  return (json.events as { type: string }[]).map(({ type }) => type);
};

const surviveOne = async (dataDir: string, point: CrashPoint): Promise<void> => {
  const isLater = point.endsWith('append confirmation');
  const first = await start(dataDir, isLater ? SILENT : { ...SILENT, CRASH_AT: point });
  const lost = await first.post('/api/v1/payments', sale);
  expect(lost.status).toBe(503);
  const paymentId = String(lost.headers.get('location')).split('/').at(-1) ?? '';
  await bothWords(first, paymentId);
  if (isLater) {
    first.kill('SIGTERM');
    await first.exited;
    // Recovery asks at its start, and the provider answers by now.
    const second = await start(dataDir, { CRASH_AT: point }).catch(() => undefined);
    if (second !== undefined) await expectDead(second, point);
  } else {
    await expectDead(first, point);
    await using third = await start(dataDir, SILENT);
    await bothWords(third, paymentId);
    expect([point, await unresolvedIn(third)]).toEqual([point, 0]);
    third.kill('SIGTERM');
    await third.exited;
  }
  await using alive = await start(dataDir, {});
  await until(
    `the provider's answer is recorded once after ${point}`,
    async () => (await typesOf(alive, paymentId)).at(-1) === 'PaymentOutcomeConfirmed',
  );
  expect([point, await typesOf(alive, paymentId)]).toEqual([
    point,
    [
      'PaymentCreated',
      'PaymentResolutionRequested',
      'PaymentAuthorized',
      'PaymentCaptured',
      'PaymentOutcomeConfirmed',
    ],
  ]);
};

/** The point that is asked about most, after the provider has acted, is in other-provider.test.ts. */
const POINTS = shareOf(
  CRASH_POINTS.toSorted((one) => (one === 'sale: after append opened' ? -1 : 0)),
  1,
);

test(`L1, M4, M6, gaps §6, §7: dead at ${POINTS.length} awaits: the repeat gets its response, and money moves once`, async () => {
  const died = await surviveCrashes(POINTS);
  process.stderr.write(`crash points: died at ${died} points, 0 lost, 0 doubled\n`);
  expect(died).toBe(POINTS.length);
});

testOfLongRun.each(WORD_CRASH_POINTS)(
  'M5, M6, gaps §16: dead at %s: no word by hand is lost, nor the asking after it, and money moved once',
  async (point) => {
    using folder = temporaryFolder();
    await surviveOne(folder.path, point);
    const payments = await expectLedgerMatchesLog(folder.path);
    expect([...payments.values()].map(({ state }) => state.operations.length)).toEqual([1]);
  },
);
