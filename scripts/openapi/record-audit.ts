import { hash } from 'node:crypto';
import { LINES_START, LOG_HEADER } from '../../audit/export-lines.ts';
import type { Manifest } from '../../shared/event-store/manifest.ts';
import { NDJSON } from '../../shared/http/server/streams.ts';
import {
  CREATE,
  example,
  fail,
  REJECTIONS,
  type Run,
  type Step,
  smallest,
  type Target,
  to,
  tokenOf,
} from './run.ts';

const readings = (paymentId?: string): Target[] => [
  to('paymentEvents', paymentId),
  to('paymentState', paymentId, '?revision=1'),
  to('verifyPayment', paymentId),
  to('explainCommand', paymentId, '?command=refund&amount=2000'),
  to('reconcilePayment', paymentId),
];
const SEARCH = to('searchPayments', '', '?q=order-1001');
const LOG = to('readLog', '', '?limit=2');
const READERS = [SEARCH, ...readings(), LOG, to('streamLog'), to('verifyLog')];
const UNRESOLVED = to('listUnresolved');
const PROJECTIONS = to('listProjections');
const resolve = (paymentId?: string) => to('resolvePayment', paymentId);
const retry = (paymentId?: string) => to('retryParked', paymentId);

const ATTENTION = to('listAttention');
const acknowledge = (itemId?: string) => to('acknowledgeAttention', itemId);
const SEEN = { note: 'TICKET-18: a test at the provider' };
const UNLOGGED = {
  operationId: 'op_00000000000000000000000000',
  paymentId: 'pay_00000000000000000000000000',
  kind: 'SALE',
  amount: 2500,
  currency: 'USD',
  outcome: 'APPROVED',
  cursor: '1',
  providerReference: 'sim_1',
} as const;

const token = 'merchant';

const READINGS: Step[] = [
  [CREATE, undefined, { body: example('payment'), token, as: 'first' }],
  [to('capturePayment', '$first'), undefined, { body: { captureAmount: 1500 }, token }],
  [SEARCH, 'By merchantReference'],
  ...readings('$first').map((target): Step => [target, 'Of a captured payment']),
  [LOG, 'The first two events'],
  [to('verifyLog'), 'Nothing was changed'],
  [to('reconcile'), 'No difference'],
  [to('reconcile', '', '?since=2026-01-01T00:00:00Z'), 'The ledger is not in order of time'],
  [to('acknowledgeReconciliation'), 'Nothing to acknowledge'],
];

const lost = async () => ({ outcome: 'UNKNOWN', reason: 'timeout' }) as const;

const EVIDENCE = {
  outcome: 'declined',
  evidence: 'Call with the provider, ticket 4711',
  withoutFence: true,
};
const SECOND = { ...EVIDENCE, evidence: 'Letter of the provider of the same day' };

/** No payment here has a message of this type, so nothing is sent. */
const ENDPOINT = { url: 'https://shop.example/webhooks', eventTypes: ['payment.void_failed'] };

/** An entry that the log lacks. */
const ledger = async () => ({ entries: [UNLOGGED], next: null });
const DIFFERING: Step[] = [
  { faults: { ledger } },
  [to('reconcile'), undefined],
  { faults: {} },
  [ATTENTION, undefined, { as: 'finding' }],
  [acknowledge('$finding'), 'Acknowledged', { body: SEEN, show: true }],
];

const FOREIGN_BREAK = {
  stream: 'payment-other',
  revision: 0,
  reason: 'no event of this service',
  note: 'TICKET-17: written by a test client',
};

const EMPTY_EXPORT: Manifest = {
  format: 'payments-export',
  version: 1,
  exportedAt: '2026-01-01T12:00:00.000Z',
  range: {},
  completeness: 'log',
  guarantee: 'log',
  count: 0,
  first: null,
  head: null,
  chain: LINES_START,
  bytes: 0,
  sha256: hash('sha256', ''),
};
/** Each folder has a log of its own. */
const nameLog: Step = async (app) => {
  const authorization = `Bearer ${await tokenOf('auditor')}`;
  const lines = await app.inject({ url: LOG.url, headers: { accept: NDJSON, authorization } });
  EMPTY_EXPORT.log = String(lines.headers[LOG_HEADER]);
};

const OPERATING: Step[] = [
  { faults: { execute: lost, lookUp: lost, fence: lost } },
  [CREATE, undefined, { body: smallest(), token, as: 'lost' }],
  [UNRESOLVED, 'One create', { until: /"nextAttemptAt":"/ }],
  [resolve('$lost'), 'The outcome is missing', { body: {} }],
  [resolve('$lost'), 'Requested by the first person', { body: EVIDENCE, show: true }],
  [ATTENTION, 'A second person has to approve', { as: 'item' }],
  [acknowledge('$item'), 'It ends with its cause', { body: SEEN }],
  [acknowledge(), 'No such item', { body: SEEN }],
  [acknowledge(), 'A note is missing', { body: {} }],
  [resolve('$lost'), 'Approved by a second person', { body: SECOND, token: 'second', show: true }],
  [resolve('$lost'), 'Nothing is open', { body: EVIDENCE }],
  { faults: {} },
  [to('listParked'), 'None'],
  [to('listRelayParked'), 'No broker is set'],
  [to('retryRelayParked'), 'No broker is set'],
  [to('retryAllRelayParked'), 'No broker is set'],
  [to('listAllWebhookEndpoints'), 'None'],
  [to('listAllWebhookEndpoints', '', '?merchant='), 'Parameter malformed'],
  [to('listAllWebhookAttempts'), 'No such endpoint'],
  [to('listAllWebhookAttempts', undefined, '?limit=0'), 'Parameter malformed'],
  [to('createWebhookEndpoint'), undefined, { body: ENDPOINT, token, as: 'endpoint' }],
  [to('listAllWebhookAttempts', '$endpoint'), 'None'],
  [PROJECTIONS, 'Nothing is behind', { until: /"lagEvents":0,/ }],
  [to('logStatus'), 'Not verified yet'],
  [to('acknowledgeBreak'), 'A note is missing', { body: {} }],
  [to('acknowledgeBreak'), 'Acknowledged', { body: FOREIGN_BREAK }],
  [to('signManifest'), 'Of another log', { body: EMPTY_EXPORT }],
  nameLog,
  [to('signManifest'), 'Signed', { body: EMPTY_EXPORT }],
  [to('signManifest'), 'No manifest', { body: {} }],
  [to('compareReadModels'), 'Nothing differs'],
  [to('rebuildProjections'), 'Begun'],
];

const FAULTS: Step[] = [{ faults: { search: fail } }, [SEARCH, 'A fault of ours'], { faults: {} }];

const withParameter = ({ id, url }: Target): Target => ({
  id,
  url: `${url}${url.includes('?') ? '&' : '?'}colour=blue`,
});

const MALFORMED: Step[] = [
  ...[...READERS, to('rebuildProjections'), to('listAttention')].map(
    (target): Step => [withParameter(target), 'A parameter is not known'],
  ),
  [retry('a+b'), 'Malformed paymentId'],
  [to('retryRelayParked', 'a+b'), 'Malformed paymentId'],
  ...[...readings(), retry()].map((target): Step => [target, 'No such payment']),
  [resolve(), 'No such payment', { body: EVIDENCE }],
];

export const AUDIT_RUNS: Run[] = [
  // The provider is asked once about the lost outcome, and not again while the rest is recorded.
  [
    { RECOVERY_DELAYS_MS: '600000' },
    [...READINGS, ...OPERATING, ...DIFFERING, ...MALFORMED, ...FAULTS, ...REJECTIONS],
  ],
];
