/** The requests whose responses the documents show: of merchants, then of auditors and operators. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ROUTES, type RouteId } from '../../shared/http/route-table.ts';
import { BOUND, isForMerchants, mayBeTooLarge } from './document.ts';
import { limitedMerchant, type Run, type Step, type Target } from './run.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');

const UNKNOWN = { paymentId: 'pay_', endpointId: 'we_', itemId: 'att_' } as const;

/** `named` is the payment or webhook endpoint of the path; left out: an unknown one. */
const to = (id: RouteId, named?: string, query = ''): Target => ({
  id,
  url:
    ROUTES[id].path.replace(
      /:(paymentId|endpointId|itemId)/,
      (_all, name: keyof typeof UNKNOWN) => named ?? UNKNOWN[name] + '0'.repeat(26),
    ) + query,
});

const CREATE: Target = to('createPayment');
const LIST: Target = to('listPayments');

const example = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(EXAMPLES, `${name}.json`), 'utf8'));

/** The smallest create; `number` is a card of gaps §13, by default one that is approved. */
const smallest = (number = '4242424242424242'): object => ({
  amount: 2500,
  currency: 'USD',
  paymentMethod: {
    type: 'CARD',
    card: { number, holderName: 'Ada Lovelace', expiryMonth: '12', expiryYear: '2030' },
  },
});

const fail = (): never => {
  throw new Error('a fault for the examples');
};

const tooLargeOn = (target: Target): Step[] =>
  mayBeTooLarge(ROUTES[target.id], BOUND[target.id].request)
    ? [[target, 'Too large', { body: ' '.repeat(65_537) }]]
    : [];

const MERCHANT_ROUTES = Object.entries(ROUTES)
  .filter(([, place]) => isForMerchants(place))
  .map(([id]) => to(id as RouteId));

/** The service takes no request after it. */
const REJECTIONS: readonly Step[] = [
  ...MERCHANT_ROUTES.flatMap((target): Step[] => {
    const limited = { token: limitedMerchant(target.id) };
    return [
      [target, 'No token', { token: 'none' }],
      [target, 'Scope missing', { token: 'withoutScope' }],
      [LIST, undefined, limited],
      [target, 'Too many requests', limited],
      ...tooLargeOn(target),
    ];
  }),
  ({ lifecycle }) => Object.assign(lifecycle, { refusing: true }),
  ...MERCHANT_ROUTES.map((target): Step => [target, 'Shutting down']),
];

const get = (paymentId?: string) => to('getPayment', paymentId);
const capture = (paymentId?: string) => to('capturePayment', paymentId);
const voided = (paymentId?: string) => to('voidPayment', paymentId);
const refund = (paymentId?: string) => to('refundPayment', paymentId);
const ON_ONE = [get(), capture(), voided(), refund()];

const show = true;
const captureNow = true;
const WRONG = { amount: '25.00', currency: 'usd', paymentMethod: { type: 'CARD', card: {} } };
const PART = { refundAmount: 500, reason: 'One cup was broken' };

const OUTCOMES: Step[] = [
  [CREATE, 'Authorized', { body: example('payment'), show, as: 'first' }],
  // Ids made within one millisecond have no order, and the pages have to be equal at every run.
  () => setTimeout(5),
  [CREATE, 'Sold in one step', { body: example('sale'), key: 'order-1', show }],
  [to('listPayments', '', '?limit=1'), 'The first page of one'],
  [CREATE, 'Declined', { body: example('declined'), show }],
  [CREATE, 'Fields are missing or malformed', { body: WRONG }],
  [CREATE, 'No JSON', { body: '{' }],
  [CREATE, 'Over the maximum', { body: { ...smallest(), amount: 100_000_000 } }],
  [CREATE, 'Another currency', { body: { ...smallest(), currency: 'EUR' } }],
  [CREATE, 'Key of another request', { body: smallest(), key: 'order-1' }],
  [CREATE, 'Provider not reachable', { body: smallest('4000000000004210') }],
  [get('$first'), 'Authorized'],
  [capture('$first'), 'Captured in part', { body: { captureAmount: 1500 }, show }],
  [capture('$first'), 'Captured already'],
  [voided('$first'), 'Captured already'],
  [refund('$first'), 'Refunded in part', { body: PART, show }],
  [get('$first'), 'Captured, and refunded in part'],
  [refund('$first'), 'Over what is left', { body: { refundAmount: 1500 } }],
  [refund('$first'), 'The rest refunded', { key: 'refund-1' }],
  [CREATE, undefined, { body: smallest(), as: 'second' }],
  [voided('$second'), 'Voided'],
  [CREATE, undefined, { body: smallest('4000000000004244'), as: 'third' }],
  [capture('$third'), 'Declined by the provider'],
  [CREATE, undefined, { body: { ...smallest('4000000000004251'), captureNow }, as: 'fourth' }],
  [refund('$fourth'), 'Declined by the provider'],
];

const REGISTER = to('createWebhookEndpoint');
const ROTATE = to('rotateWebhookSecret', '$hook');
const HOOK = { url: 'https://shop.example/webhooks' };
const NEVER_SENT = { eventId: '00000000-0000-4000-8000-000000000000' };
const SINCE = { since: '2026-01-01T12:00:00.000Z' };
const UNKNOWN_HOOK = 'No such endpoint';
/** No payment here has a message of this type, so nothing is sent. */
const SELDOM = { ...HOOK, eventTypes: ['payment.void_failed'] };

/** Only the test is sent, and no response shows its outcome. */
const WEBHOOKS: Step[] = [
  [REGISTER, 'Registered', { body: { ...HOOK, description: 'The shop' }, show, as: 'hook' }],
  [REGISTER, 'Not a public address', { body: { url: 'https://10.0.0.1/' } }],
  [to('listWebhookEndpoints'), 'One endpoint'],
  [to('listWebhookEndpoints', '', '?colour=blue'), 'A parameter is not known'],
  [to('getWebhookEndpoint', '$hook'), 'Enabled'],
  [to('listWebhookAttempts', '$hook'), 'None yet'],
  [to('listWebhookAttempts', '$hook', '?limit=0'), 'Parameter malformed'],
  [ROTATE, 'Rotated', { body: { oldExpiresInHours: 24 }, show }],
  [ROTATE, undefined, { key: 'rotate-1' }],
  [ROTATE, 'Key of another request', { body: { oldExpiresInHours: 0 }, key: 'rotate-1' }],
  [ROTATE, 'Too long', { body: { oldExpiresInHours: 169 } }],
  [REGISTER, undefined, { body: SELDOM, as: 'seldom' }],
  [to('resendWebhookEvents', '$seldom'), 'Since a moment', { body: SINCE, show }],
  [to('resendWebhookEvents', '$seldom'), 'Neither of the two', { body: {} }],
  [to('resendWebhookEvents', '$seldom'), 'An event without an attempt', { body: NEVER_SENT }],
  [to('changeWebhookEndpoint', '$hook'), 'Disabled', { body: { status: 'DISABLED' }, show }],
  [to('changeWebhookEndpoint', '$hook'), 'Malformed', { body: { status: 'PAUSED' } }],
  [to('changeWebhookEndpoint', '$hook'), 'Not enabled', { body: { resumeFrom: 'now' } }],
  [REGISTER, undefined, { body: HOOK, as: 'spare' }],
  [to('testWebhookEndpoint', '$hook'), 'Requested'],
  [to('testWebhookEndpoint', '$hook'), 'Key malformed', { key: '' }],
  ...Array.from({ length: 7 }, (): Step => [REGISTER, undefined, { body: HOOK }]),
  [REGISTER, 'One too many', { body: HOOK }],
  [to('deleteWebhookEndpoint', '$spare'), 'Deleted'],
  [to('streamWebhookEvents', '', '?types=payment.sent'), 'Parameter malformed'],
  [to('getWebhookEndpoint'), UNKNOWN_HOOK],
  [to('changeWebhookEndpoint'), UNKNOWN_HOOK, { body: { status: 'DISABLED' } }],
  [to('deleteWebhookEndpoint'), UNKNOWN_HOOK],
  [to('rotateWebhookSecret'), UNKNOWN_HOOK],
  [to('testWebhookEndpoint'), UNKNOWN_HOOK],
  [to('resendWebhookEvents'), UNKNOWN_HOOK, { body: SINCE }],
  [to('listWebhookAttempts'), UNKNOWN_HOOK],
];

const MALFORMED: Step[] = [
  [to('listPayments', '', '?limit=0&status=PAID'), 'Parameters malformed'],
  [get('a+b'), 'Malformed paymentId'],
  [voided('a+b'), 'Malformed paymentId'],
  [capture(), 'Amount malformed', { body: { captureAmount: 0 } }],
  [refund(), 'Amount malformed', { body: { refundAmount: '5.00' } }],
  ...ON_ONE.map((target): Step => [target, 'No such payment']),
];

const CHANGEABLE: Step[] = [
  [CREATE, undefined, { body: smallest(), as: 'capturable' }],
  [CREATE, undefined, { body: { ...smallest(), captureNow }, as: 'refundable' }],
  [CREATE, undefined, { body: smallest(), as: 'voidable' }],
];
const CHANGES = [capture('$capturable'), refund('$refundable'), voided('$voidable')];

const FAULTS: Step[] = [
  ...CHANGEABLE,
  { faults: { get: fail, search: fail, waitForRevision: fail } },
  [CREATE, 'A fault of ours', { body: smallest() }],
  ...[LIST, get(), ...CHANGES].map((target): Step => [target, 'A fault of ours']),
  { faults: {} },
];

const held = Promise.withResolvers<{ outcome: 'UNKNOWN'; reason: 'timeout' }>();
const [CAPTURE = CREATE, ...OTHERS] = CHANGES;
const key = 'held-1';
const atOnce = (name: string): Step[] => [
  [CAPTURE, name, { key }],
  [CREATE, name, { body: smallest(), key }],
  ...OTHERS.map((target): Step => [target, name, { key }]),
];

/** The provider holds its responses back: first requests end unknown, repeats find them in flight. */
const HELD: Step[] = [
  ...CHANGEABLE,
  { faults: { execute: () => held.promise } },
  { atOnce: atOnce('Outcome not known yet') },
  { atOnce: atOnce('The first one still runs') },
  () => held.resolve({ outcome: 'UNKNOWN', reason: 'timeout' }),
  { faults: {} },
  [CREATE, 'The shopper is needed', { body: example('authentication'), show }],
  [CREATE, 'By a token', { body: example('token'), show }],
  [CREATE, 'With metadata', { body: { ...smallest(), metadata: { order: '7' } }, show }],
  [CREATE, 'With results of 3-D Secure', { body: example('three-d-secure'), show }],
];

const BUDGET_MS = '2000';

export const MERCHANT_RUNS: Run[] = [
  [{}, [...OUTCOMES, ...MALFORMED, ...WEBHOOKS, ...FAULTS, ...REJECTIONS]],
  [{ REQUEST_BUDGET_MS: BUDGET_MS, PROVIDER_TIMEOUT_MS: BUDGET_MS }, HELD],
];

const OF_PAYMENT = 'Of a captured payment';
const lost = async () => ({ outcome: 'UNKNOWN', reason: 'timeout' }) as const;
const CASE = { ticket: 'CASE-4711' };
const ORDER = { reason: 'COURT_ORDER', ...CASE };
const EVIDENCE = {
  outcome: 'declined',
  evidence: 'Call with the provider, ticket 4711',
  withoutFence: true,
};
const FOREIGN_BREAK = {
  stream: 'payment-other',
  revision: 0,
  reason: 'no event of this service',
  note: 'TICKET-17: written by a test client',
};
const SEEN = { note: 'TICKET-18: a test at the provider' };

/** Each route once; where its success takes more than a request, what it rejects. */
const OPERATING: Step[] = [
  [CREATE, undefined, { body: example('payment'), as: 'first' }],
  [capture('$first'), undefined, { body: { captureAmount: 1500 } }],
  [REGISTER, undefined, { body: SELDOM, as: 'endpoint' }],
  [to('searchPayments', '', '?q=order-1001'), 'By merchantReference'],
  [to('paymentEvents', '$first'), OF_PAYMENT],
  [to('paymentState', '$first', '?revision=1'), OF_PAYMENT],
  [to('verifyPayment', '$first'), OF_PAYMENT],
  [to('explainCommand', '$first', '?command=refund&amount=2000'), OF_PAYMENT],
  [to('reconcilePayment', '$first'), OF_PAYMENT],
  [to('reconcile'), 'No difference'],
  [to('readLog', '', '?limit=2'), 'The first two events'],
  [to('streamLog', '', '?colour=blue'), 'A parameter is not known'],
  [to('verifyLog'), 'Nothing was changed'],
  [to('exportEvents', '', '?colour=blue'), 'A parameter is not known'],
  [to('logStatus'), 'Verified, and not sealed yet'],
  [to('acknowledgeBreak'), 'No verification named it', { body: FOREIGN_BREAK }],
  [to('listAllWebhookEndpoints'), 'One endpoint'],
  [to('listAllWebhookAttempts', '$endpoint'), 'None'],
  [to('stripeWebhook'), 'No signature', { body: {} }],
  [to('listParked'), 'None'],
  [to('retryParked'), 'No such payment'],
  [to('listRelayParked'), 'No broker is set'],
  [to('retryRelayParked'), 'No broker is set'],
  [to('retryAllRelayParked'), 'No broker is set'],
  [to('acknowledgeReconciliation'), 'Nothing to acknowledge'],
  [to('holdErasure', '$first'), 'Held', { body: CASE, show }],
  [to('releaseErasure', '$first'), 'Released'],
  [to('erasePayment', '$first'), 'Requested by the first person', { body: ORDER, show }],
  [to('searchPeople'), 'None has this address', { body: { email: 'jane@example.com' }, show }],
  { faults: { execute: lost, lookUp: lost, fence: lost } },
  [CREATE, undefined, { body: smallest(), as: 'lost' }],
  [to('listUnresolved'), 'One create', { until: /"nextAttemptAt":"/ }],
  [to('resolvePayment', '$lost'), 'Requested by the first person', { body: EVIDENCE, show }],
  [to('listAttention'), 'A second person has to approve', { as: 'item' }],
  [to('acknowledgeAttention', '$item'), 'It ends with its cause', { body: SEEN, show }],
  [to('compareReadModels'), 'Nothing differs'],
  [to('listProjections'), 'Nothing is behind', { until: /"lagEvents":0,/ }],
  [to('rebuildProjections'), 'Begun'],
];

// The provider is asked once about the lost outcome, and not again while the rest is recorded.
export const AUDIT_RUNS: Run[] = [[{ RECOVERY_DELAYS_MS: '600000' }, OPERATING]];
