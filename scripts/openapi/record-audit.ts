/** Records responses of the auditors' and operators' routes, rejections included. */
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
import { stabilizerOfAll } from './stable.ts';

const readings = (paymentId?: string): Target[] => [
  to('paymentEvents', paymentId),
  to('paymentState', paymentId, '?revision=1'),
  to('verifyPayment', paymentId),
  to('explainCommand', paymentId, '?command=refund&amount=2000'),
];
const SEARCH = to('searchPayments', '', '?q=order-1001');
const LOG = to('readLog', '', '?limit=2');
const READERS = [SEARCH, ...readings(), LOG, to('streamLog'), to('verifyLog')];
const CREATE = to('createPayment');
const UNRESOLVED = to('listUnresolved');
const PROJECTIONS = to('listProjections');
const resolve = (paymentId?: string) => to('resolvePayment', paymentId);
const retry = (paymentId?: string) => to('retryParked', paymentId);

const ALL = [
  ...[...READERS, to('reconcile'), UNRESOLVED, resolve(), to('listParked'), retry()],
  ...[PROJECTIONS, to('rebuildProjections')],
];

const withParameter = ({ id, url }: Target): Target => ({
  id,
  url: `${url}${url.includes('?') ? '&' : '?'}colour=blue`,
});

const recordReadings = async ({ record, send }: Recorder, merchant: string): Promise<void> => {
  const token = merchant;
  const { body } = await send(CREATE, { body: example('payment'), token });
  const { paymentId } = body;
  const capture = { body: { captureAmount: 1500 }, token };
  await send(to('capturePayment', paymentId), capture);
  await record(SEARCH, 'By merchantReference');
  for (const target of readings(paymentId)) await record(target, 'Of a captured payment');
  await record(LOG, 'The first two events');
  await record(to('verifyLog'), 'Nothing was changed');
  await record(to('reconcile'), 'No difference');
};

const POLL_MS = 10;
const POLLS_MAX = 500;

/** Waits until a list is as it will stay, so that it is shown alike each time. */
const until = async (
  { send }: Recorder,
  target: Target,
  isSo: (body: never) => boolean,
): Promise<void> => {
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    if (isSo((await send(target)).body as never)) return;
    await setTimeout(POLL_MS);
  }
  throw new Error(`${target.id} never showed what the examples wait for`);
};

type Unresolved = { unresolved: { nextAttemptAt: string | null }[] };
const hasLookedUp = ({ unresolved: [one] }: Unresolved) => typeof one?.nextAttemptAt === 'string';
type Projections = { projections: { lagEvents: number | null }[] };
const isApplied = ({ projections: [one] }: Projections) => one?.lagEvents === 0;

const EVIDENCE = { outcome: 'declined', evidence: 'Call with the provider, ticket 4711' };

const recordOperating = async (own: Recorder, merchant: string, faults: Faults): Promise<void> => {
  const { record, send } = own;
  faults.responsesLost = true;
  const lost = await send(CREATE, { body: smallest(APPROVED), token: merchant });
  const [named = ''] = (lost.body as unknown as { details: string[] }).details;
  const paymentId = named.replace('paymentId ', '');
  await until(own, UNRESOLVED, hasLookedUp);
  await record(UNRESOLVED, 'One create');
  await record(resolve(paymentId), 'The outcome is missing', { body: {} });
  await record(resolve(paymentId), 'Declined, on evidence', { body: EVIDENCE, show: true });
  await record(resolve(paymentId), 'Nothing is open', { body: EVIDENCE });
  faults.responsesLost = false;
  await record(to('listParked'), 'None');
  await until(own, PROJECTIONS, isApplied);
  await record(PROJECTIONS, 'Nothing is behind');
  await record(to('rebuildProjections'), 'Begun');
};

const recordMalformed = async ({ record }: Recorder): Promise<void> => {
  for (const target of READERS) await record(withParameter(target), 'A parameter is not known');
  await record(retry('a+b'), 'Malformed paymentId');
  for (const target of [...readings(), retry()]) await record(target, 'No such payment');
  await record(resolve(), 'No such payment', { body: EVIDENCE });
};

/** The recordings, the same at every run. */
export const recordAuditApi = async (): Promise<Recording[]> => {
  const scope = 'audit:read ops:admin';
  const merchant = await tokenOf('m_demo');
  const tokens = { withoutScope: merchant, limited: await tokenOf('m_limited', scope) };
  return recordRuns(await tokenOf('*', scope), stabilizerOfAll(), (run, faults) =>
    // One question, and none while the rest is recorded.
    run({ RECOVERY_DELAYS_MS: '600000' }, async (own) => {
      await recordReadings(own, merchant);
      await recordOperating(own, merchant, faults);
      await recordMalformed(own);
      await recordForAll(own, ALL, tokens, UNRESOLVED);
    }),
  );
};
