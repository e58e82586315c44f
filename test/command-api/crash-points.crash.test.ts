/** A process ends at every await of create, capture, void, refund, recovery, projection and erasure. */
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { KEYS_FILE } from '../../personal-data/open.ts';
import {
  APPROVER,
  CRASH_POINTS,
  type CrashPoint,
  ERASURE_CRASH_POINTS,
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

const byHand = async (service: Service, sub: string, path: string, body: object) => {
  const scope = 'ops:admin ops:resolve ops:erase';
  const token = await signToken({ merchant_id: '*', sub, scope });
  return service.post(`/ops/v1/payments/${path}`, body, { authorization: `Bearer ${token}` });
};

const WORD = { outcome: 'approved', evidence: 'the statement of the provider' };
/** Both words, one after the other; a service that dies gives no more answers. */
const bothWords = async (service: Service, paymentId: string): Promise<void> => {
  for (const sub of ['jane', APPROVER]) {
    await byHand(service, sub, `${paymentId}/resolve`, WORD).catch(() => undefined);
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

const ONE_PERSON = { ERASURE_APPROVERS: '1', ERASURE_HOLD_DAYS: '0' };
const ORDER = { reason: 'CONSUMER_REQUEST', ticket: 'DPO-17' };
const erase = (service: Service, paymentId: string) =>
  byHand(service, 'jane', `${paymentId}/erase`, ORDER);

/** How many keys of a folder are erased. */
const keysErased = (dataDir: string): unknown => {
  using db = new DatabaseSync(join(dataDir, KEYS_FILE), { readOnly: true });
  return db.prepare('SELECT count(*) AS count FROM personal_key WHERE wrapped IS NULL').get();
};

// Of those behind the event the first tells most: its key is there.
test.each(shareOf(ERASURE_CRASH_POINTS.slice(1), 1))(
  'gaps §19: dead at %s, and again while the next start repeats it: its key is erased before a request, by one event',
  async (point) => {
    using folder = temporaryFolder();
    const first = await start(folder.path, { ...ONE_PERSON, CRASH_AT: point });
    const paid = { ...sale, paymentMethod: payment.paymentMethod };
    const { paymentId } = (await first.post('/api/v1/payments', paid)).json;
    await expect(erase(first, paymentId)).rejects.toThrow();
    await expectDead(first, point);
    const again = start(folder.path, { CRASH_AT: 'erasure: after erase keys' });
    await expect(again).rejects.toThrow('the service ended');
    await using alive = await start(folder.path, ONE_PERSON);
    expect(keysErased(folder.path)).toEqual({ count: 1 });
    expect((await erase(alive, paymentId)).status).toBe(200);
    const types = await typesOf(alive, paymentId);
    expect(types.filter((type) => type === 'PaymentPersonalDataErased')).toHaveLength(1);
  },
);
