/** Records an answer for every status of every merchant route. */
import { setTimeout } from 'node:timers/promises';
import type { Service } from '../../embedded/compose.ts';
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
import { stabilizer } from './stable.ts';

const BUDGET_MS = 400;

const CREATE: Route = ['createPayment', 'POST', PAYMENTS];
const list = (query = ''): Route => ['listPayments', 'GET', PAYMENTS + query];
const get = (id: string): Route => ['getPayment', 'GET', `${PAYMENTS}/${id}`];
const CHANGES = ['capture', 'void', 'refund'] as const;
const change = (kind: (typeof CHANGES)[number], id: string): Route => [
  `${kind}Payment`,
  'POST',
  `${PAYMENTS}/${id}/${kind}`,
];

const recordOutcomes = async ({ record, send }: Recorder): Promise<void> => {
  const create = async (body: object): Promise<string> =>
    (await send('POST', PAYMENTS, { body })).body.paymentId;
  const show = true;
  const { paymentId } = await record(CREATE, 'Authorized', { body: example('payment'), show });
  // Ids do not tell an order within a millisecond, and the pages are to come out alike each time.
  await setTimeout(5);
  await record(CREATE, 'Sold in one step', { body: example('sale'), key: 'order-1', show });
  await record(list('?limit=1'), 'The first page of one');
  await record(CREATE, 'Declined', { body: example('declined'), show });
  const wrong = { amount: '25.00', currency: 'usd', paymentMethod: { type: 'CARD', card: {} } };
  await record(CREATE, 'Fields are missing or malformed', { body: wrong });
  await record(CREATE, 'No JSON', { body: '{' });
  await record(CREATE, 'Over the maximum', { body: smallest(APPROVED, { amount: 100_000_000 }) });
  await record(CREATE, 'Another currency', { body: smallest(APPROVED, { currency: 'EUR' }) });
  await record(CREATE, 'Key of another request', { body: smallest(APPROVED), key: 'order-1' });
  await record(CREATE, 'Provider not reachable', { body: smallest('4000000000004210') });
  await record(get(paymentId), 'Authorized');
  const part = { body: { captureAmount: 1500 }, show };
  await record(change('capture', paymentId), 'Captured in part', part);
  await record(change('capture', paymentId), 'Captured already');
  await record(change('void', paymentId), 'Captured already');
  const some = { body: { refundAmount: 500, reason: 'One cup was broken' }, show };
  await record(change('refund', paymentId), 'Refunded in part', some);
  await record(get(paymentId), 'Captured, and refunded in part');
  await record(change('refund', paymentId), 'Over what is left', { body: { refundAmount: 1500 } });
  await record(change('refund', paymentId), 'The rest refunded', { key: 'refund-1' });
  await record(change('void', await create(smallest(APPROVED))), 'Voided');
  const undone = await create(smallest('4000000000004244'));
  await record(change('capture', undone), 'Declined by the provider');
  const kept = await create(smallest('4000000000004251', { captureNow: true }));
  await record(change('refund', kept), 'Declined by the provider');
};

const BAD_AMOUNTS = { capture: { captureAmount: 0 }, refund: { refundAmount: '5.00' } };

type Tokens = { forAudit: string; limited: string };

const UNKNOWN_ID = 'pay_00000000000000000000000000';
const ON_ONE = [get(UNKNOWN_ID), ...CHANGES.map((kind) => change(kind, UNKNOWN_ID))];
const ALL = [CREATE, list(), ...ON_ONE];

const recordRefusals = async ({ record, send }: Recorder, tokens: Tokens): Promise<void> => {
  await record(list('?limit=0&status=PAID'), 'Parameters malformed');
  await record(get('a+b'), 'Malformed paymentId');
  await record(change('void', 'a+b'), 'Malformed paymentId');
  for (const kind of ['capture', 'refund'] as const) {
    await record(change(kind, UNKNOWN_ID), 'Amount malformed', { body: BAD_AMOUNTS[kind] });
  }
  for (const route of ON_ONE) await record(route, 'No such payment');
  for (const route of ALL) {
    await record(route, 'No token', { token: '' });
    await record(route, 'Scope missing', { token: tokens.forAudit });
    await send(route[1], route[2], { token: tokens.limited });
    await record(route, 'Too many requests', { token: tokens.limited });
    if (route[1] === 'POST') await record(route, 'Too large', { body: ' '.repeat(65_537) });
  }
};

/** An authorized payment for capture and void each, and a captured one for refund. */
const suited = async ({ send }: Recorder): Promise<Route[]> => {
  const routes = CHANGES.map(async (kind) => {
    const body = smallest(APPROVED, { captureNow: kind === 'refund' });
    return change(kind, (await send('POST', PAYMENTS, { body })).body.paymentId);
  });
  return Promise.all(routes);
};

const recordFaults = async (own: Recorder, service: Service, faults: Faults): Promise<void> => {
  const { record } = own;
  const changes = await suited(own);
  faults.storeFails = true;
  await record(CREATE, 'A fault of ours', { body: smallest(APPROVED) });
  for (const route of [list(), get(UNKNOWN_ID), ...changes]) await record(route, 'A fault of ours');
  faults.storeFails = false;
  service.app.lifecycle.closing = true;
  for (const route of ALL) await record(route, 'Shutting down');
};

/** The provider holds its answers back: first requests end unknown, repeats find them running. */
const recordHeld = async (own: Recorder, faults: Faults): Promise<void> => {
  const changes = await suited(own);
  const { promise, resolve } = Promise.withResolvers<void>();
  faults.held = promise;
  const body = smallest(APPROVED);
  const all = async (name: string): Promise<void> => {
    const key = 'held-1';
    const sent = [
      own.record(CREATE, name, { body, key }),
      ...changes.map((r) => own.record(r, name, { key })),
    ];
    await Promise.all(sent);
  };
  await all('Outcome not known yet');
  await all('The first one still runs');
  resolve();
};

/**
 * The recordings, the same at every run. Takes one to two seconds, most of them spent waiting for
 * requests whose provider does not answer.
 */
export const recordMerchantApi = async (): Promise<Recording[]> => {
  const tokens = {
    forAudit: await tokenOf('m_demo', 'audit:read'),
    limited: await tokenOf('m_limited'),
  };
  const recordings = await recordRuns(await tokenOf('m_demo'), async (run, faults) => {
    await run({}, async (own, service) => {
      await recordOutcomes(own);
      await recordRefusals(own, tokens);
      await recordFaults(own, service, faults);
    });
    const hasty = { REQUEST_BUDGET_MS: String(BUDGET_MS), PROVIDER_TIMEOUT_MS: String(BUDGET_MS) };
    await run(hasty, (own) => recordHeld(own, faults));
  });
  const stable = stabilizer();
  // Requests that ran side by side were recorded in the order in which they happened to end.
  const inOrder = recordings
    .map((one, at) => ({ one, at: one.name.match(/known yet|still runs/) ? Infinity : at }))
    .sort((a, b) => a.at - b.at || (a.one.operationId < b.one.operationId ? -1 : 1))
    .map(({ one }) => one);
  return inOrder.map((one) => ({ ...one, body: stable(one.body) }));
};
