/** Records a response for every status of every merchant route. */
import { setTimeout } from 'node:timers/promises';
import type { Recording } from './document.ts';
import {
  APPROVED,
  example,
  type Faults,
  type Recorder,
  recordForAll,
  recordRuns,
  smallest,
  type Target,
  to,
  tokenOf,
} from './run.ts';
import { stabilizer } from './stable.ts';

const BUDGET_MS = 400;

const CREATE = to('createPayment');
const LIST = to('listPayments');
const get = (paymentId?: string) => to('getPayment', paymentId);
const capture = (paymentId?: string) => to('capturePayment', paymentId);
const voided = (paymentId?: string) => to('voidPayment', paymentId);
const refund = (paymentId?: string) => to('refundPayment', paymentId);
const ON_ONE = [get(), capture(), voided(), refund()];
const ALL = [CREATE, LIST, ...ON_ONE];

const recordOutcomes = async ({ record, send }: Recorder): Promise<void> => {
  const create = async (body: object): Promise<string> =>
    (await send(CREATE, { body })).body.paymentId;
  const show = true;
  const { paymentId } = await record(CREATE, 'Authorized', { body: example('payment'), show });
  // Ids made within one millisecond have no order, and the pages have to be alike at every run.
  await setTimeout(5);
  await record(CREATE, 'Sold in one step', { body: example('sale'), key: 'order-1', show });
  await record(to('listPayments', '', '?limit=1'), 'The first page of one');
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
  await record(capture(paymentId), 'Captured in part', part);
  await record(capture(paymentId), 'Captured already');
  await record(voided(paymentId), 'Captured already');
  const some = { body: { refundAmount: 500, reason: 'One cup was broken' }, show };
  await record(refund(paymentId), 'Refunded in part', some);
  await record(get(paymentId), 'Captured, and refunded in part');
  await record(refund(paymentId), 'Over what is left', { body: { refundAmount: 1500 } });
  await record(refund(paymentId), 'The rest refunded', { key: 'refund-1' });
  await record(voided(await create(smallest(APPROVED))), 'Voided');
  const undone = await create(smallest('4000000000004244'));
  await record(capture(undone), 'Declined by the provider');
  const kept = await create(smallest('4000000000004251', { captureNow: true }));
  await record(refund(kept), 'Declined by the provider');
};

const recordMalformed = async ({ record }: Recorder): Promise<void> => {
  await record(to('listPayments', '', '?limit=0&status=PAID'), 'Parameters malformed');
  await record(get('a+b'), 'Malformed paymentId');
  await record(voided('a+b'), 'Malformed paymentId');
  await record(capture(), 'Amount malformed', { body: { captureAmount: 0 } });
  await record(refund(), 'Amount malformed', { body: { refundAmount: '5.00' } });
  for (const target of ON_ONE) await record(target, 'No such payment');
};

/** A captured payment for refund, and an authorized one for capture and void each. */
const suited = async ({ send }: Recorder): Promise<Target[]> =>
  Promise.all(
    [capture, refund, voided].map(async (change) => {
      const body = smallest(APPROVED, { captureNow: change === refund });
      return change((await send(CREATE, { body })).body.paymentId);
    }),
  );

const recordFaults = async (own: Recorder, faults: Faults): Promise<void> => {
  const changes = await suited(own);
  faults.storeFails = true;
  await own.record(CREATE, 'A fault of ours', { body: smallest(APPROVED) });
  for (const target of [LIST, get(), ...changes]) await own.record(target, 'A fault of ours');
  faults.storeFails = false;
};

/** The provider holds its responses back: first requests end unknown, repeats find them running. */
const recordHeld = async (own: Recorder, faults: Faults): Promise<void> => {
  const [capturing, ...others] = await suited(own);
  const { promise, resolve } = Promise.withResolvers<void>();
  faults.held = promise;
  const body = smallest(APPROVED);
  const key = 'held-1';
  const all = (name: string) => [
    own.record(capturing as Target, name, { key }),
    own.record(CREATE, name, { body, key }),
    ...others.map((target) => own.record(target, name, { key })),
  ];
  await Promise.all(all('Outcome not known yet'));
  await Promise.all(all('The first one still runs'));
  resolve();
};

/**
 * The recordings, the same at every run. Takes one to two seconds, most of them spent waiting for
 * requests whose provider does not respond.
 */
export const recordMerchantApi = async (): Promise<Recording[]> => {
  const withoutScope = await tokenOf('m_demo', 'audit:read');
  const tokens = { withoutScope, limited: await tokenOf('m_limited') };
  const hasty = { REQUEST_BUDGET_MS: String(BUDGET_MS), PROVIDER_TIMEOUT_MS: String(BUDGET_MS) };
  return recordRuns(await tokenOf('m_demo'), stabilizer(), async (run, faults) => {
    await run({}, async (own) => {
      await recordOutcomes(own);
      await recordMalformed(own);
      await recordFaults(own, faults);
      await recordForAll(own, ALL, tokens, LIST);
    });
    await run(hasty, (own) => recordHeld(own, faults));
  });
};
