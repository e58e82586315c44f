/** Records answers of the auditors' and operators' routes, refusals included. */
import { setTimeout } from 'node:timers/promises';
import type {} from '../../shared/http/server/app.ts';
import type { Recording } from './document.ts';
import {
  APPROVED,
  example,
  type Faults,
  PAYMENTS,
  type Recorder,
  type Route,
  recordRuns,
  smallest,
  tokenOf,
} from './run.ts';
import { stabilizerOfAll } from './stable.ts';

const UNKNOWN_ID = 'pay_00000000000000000000000000';

const on = (id: string) => (operationId: string, rest: string) =>
  [operationId, 'GET', `/audit/v1/payments/${id}/${rest}`] as Route;

const readings = (id: string): Route[] => {
  const route = on(id);
  return [
    route('paymentEvents', 'events'),
    route('paymentState', 'state?revision=1'),
    route('verifyPayment', 'verify'),
    route('explainCommand', 'explain?command=refund&amount=2000'),
  ];
};
const SEARCH: Route = ['searchPayments', 'GET', '/audit/v1/payments?q=order-1001'];
const LOG: Route = ['readLog', 'GET', '/audit/v1/events?limit=2'];
const STREAM: Route = ['streamLog', 'GET', '/audit/v1/events/stream'];
const VERIFY: Route = ['verifyLog', 'GET', '/audit/v1/verify'];
const RECONCILE: Route = ['reconcile', 'POST', '/audit/v1/reconcile'];
const UNRESOLVED: Route = ['listUnresolved', 'GET', '/ops/v1/unresolved'];
const PARKED: Route = ['listParked', 'GET', '/ops/v1/parked'];
const PROJECTIONS: Route = ['listProjections', 'GET', '/ops/v1/projections'];
const REBUILD: Route = ['rebuildProjections', 'POST', '/ops/v1/projections/rebuild'];
const resolve = (id: string): Route => ['resolvePayment', 'POST', `/ops/v1/payments/${id}/resolve`];
const retry = (id: string): Route => ['retryParked', 'POST', `/ops/v1/parked/${id}/retry`];

const ALL = [
  ...[SEARCH, ...readings(UNKNOWN_ID), LOG, STREAM, VERIFY],
  ...[RECONCILE, UNRESOLVED, resolve(UNKNOWN_ID), PARKED, retry(UNKNOWN_ID)],
  ...[PROJECTIONS, REBUILD],
];

const withParameter = ([operationId, method, url]: Route): Route => [
  operationId,
  method,
  `${url}${url.includes('?') ? '&' : '?'}colour=blue`,
];

const recordReadings = async ({ record, send }: Recorder, merchant: string): Promise<void> => {
  const token = merchant;
  const { body } = await send('POST', PAYMENTS, { body: example('payment'), token });
  const { paymentId } = body;
  const capture = { body: { captureAmount: 1500 }, token };
  await send('POST', `${PAYMENTS}/${paymentId}/capture`, capture);
  await record(SEARCH, 'By merchantReference');
  for (const route of readings(paymentId)) await record(route, 'Of a captured payment');
  await record(LOG, 'The first two events');
  await record(VERIFY, 'Nothing was changed');
  await record(RECONCILE, 'No difference');
};

const POLL_MS = 10;
const POLLS_MAX = 500;

/** Waits until recovery has asked for the one open operation, so that it is shown alike each time. */
const untilAsked = async (read: () => Promise<unknown>): Promise<void> => {
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const { unresolved } = (await read()) as { unresolved?: { nextAttemptAt: string | null }[] };
    if (typeof unresolved?.[0]?.nextAttemptAt === 'string') return;
    await setTimeout(POLL_MS);
  }
  throw new Error('recovery never asked');
};

/** Waits until nothing is behind, so that it is shown alike each time. */
const untilApplied = async (read: () => Promise<unknown>): Promise<void> => {
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const { projections } = (await read()) as { projections?: { lagEvents: number | null }[] };
    if (projections?.[0]?.lagEvents === 0) return;
    await setTimeout(POLL_MS);
  }
  throw new Error('the read models never caught up');
};

const EVIDENCE = { outcome: 'declined', evidence: 'Call with the provider, ticket 4711' };

const recordOperating = async (
  { record, send }: Recorder,
  merchant: string,
  faults: Faults,
): Promise<void> => {
  faults.responsesLost = true;
  const lost = await send('POST', PAYMENTS, { body: smallest(APPROVED), token: merchant });
  const [named = ''] = (lost.body as unknown as { details: string[] }).details;
  const paymentId = named.replace('paymentId ', '');
  await untilAsked(async () => (await send('GET', UNRESOLVED[2])).body);
  await record(UNRESOLVED, 'One create');
  await record(resolve(paymentId), 'The outcome is missing', { body: {} });
  await record(resolve(paymentId), 'Declined, on evidence', { body: EVIDENCE, show: true });
  await record(resolve(paymentId), 'Nothing is open', { body: EVIDENCE });
  faults.responsesLost = false;
  await record(PARKED, 'None');
  await untilApplied(async () => (await send('GET', PROJECTIONS[2])).body);
  await record(PROJECTIONS, 'Nothing is behind');
  await record(REBUILD, 'Begun');
};

const recordRefusals = async (
  { record, send }: Recorder,
  tokens: { merchant: string; limited: string },
): Promise<void> => {
  const readers = [SEARCH, ...readings(UNKNOWN_ID), LOG, STREAM, VERIFY];
  for (const route of readers) await record(withParameter(route), 'A parameter is not known');
  await record(retry('a+b'), 'Malformed paymentId');
  const missing = [...readings(UNKNOWN_ID), retry(UNKNOWN_ID)];
  for (const route of missing) await record(route, 'No such payment');
  await record(resolve(UNKNOWN_ID), 'No such payment', { body: EVIDENCE });
  for (const route of [resolve(UNKNOWN_ID), retry(UNKNOWN_ID)]) {
    await record(route, 'Too large', { body: ' '.repeat(65_537) });
  }
  for (const route of ALL) {
    await record(route, 'No token', { token: '' });
    await record(route, 'Scope missing', { token: tokens.merchant });
    await send('GET', UNRESOLVED[2], { token: tokens.limited });
    await record(route, 'Too many requests', { token: tokens.limited });
  }
};

/** The recordings, the same at every run. */
export const recordAuditApi = async (): Promise<Recording[]> => {
  const scope = 'audit:read ops:admin';
  const merchant = await tokenOf('m_demo');
  const tokens = { merchant, limited: await tokenOf('m_limited', scope) };
  const recordings = await recordRuns(await tokenOf('*', scope), (run, faults) =>
    // One question, and none while the rest is recorded.
    run({ RECOVERY_DELAYS_MS: '600000' }, async (own, service) => {
      await recordReadings(own, merchant);
      await recordOperating(own, merchant, faults);
      await recordRefusals(own, tokens);
      service.app.lifecycle.closing = true;
      for (const route of ALL) await own.record(route, 'Shutting down');
    }),
  );
  const stable = stabilizerOfAll();
  return recordings.map((one) => ({ ...one, body: stable(one.body) }));
};
