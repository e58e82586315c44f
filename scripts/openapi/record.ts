import { setTimeout } from 'node:timers/promises';
import {
  CREATE,
  example,
  fail,
  LIST,
  REJECTIONS,
  type Run,
  type Step,
  smallest,
  to,
} from './run.ts';

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
const HOOK = { url: 'https://shop.example/webhooks' };
const NEVER_SENT = { eventId: '00000000-0000-4000-8000-000000000000' };
const SINCE = { since: '2026-01-01T12:00:00.000Z' };
const UNKNOWN_HOOK = 'No such endpoint';
const SELDOM = { ...HOOK, eventTypes: ['payment.void_failed'] };
const ROTATED = { oldExpiresInHours: 0 };

/** Only the test is sent, and no response shows its outcome. */
const WEBHOOKS: Step[] = [
  [REGISTER, 'Registered', { body: { ...HOOK, description: 'The shop' }, show, as: 'hook' }],
  [REGISTER, 'Not a public address', { body: { url: 'https://10.0.0.1/' } }],
  [to('listWebhookEndpoints'), 'One endpoint'],
  [to('getWebhookEndpoint', '$hook'), 'Enabled'],
  [to('listWebhookAttempts', '$hook'), 'None yet'],
  [to('listWebhookAttempts', '$hook', '?limit=0'), 'Parameter malformed'],
  [to('rotateWebhookSecret', '$hook'), 'Rotated', { body: { oldExpiresInHours: 24 }, show }],
  [to('rotateWebhookSecret', '$hook'), undefined, { key: 'rotate-1' }],
  [
    to('rotateWebhookSecret', '$hook'),
    'Key of another request',
    { body: ROTATED, key: 'rotate-1' },
  ],
  [to('rotateWebhookSecret', '$hook'), 'Too long', { body: { oldExpiresInHours: 169 } }],
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

const AUTHENTICATION = { authentication: { returnUrl: 'https://shop.example/orders/7' } };

/** The provider holds its responses back: first requests end unknown, repeats find them in flight. */
const HELD: Step[] = [
  ...CHANGEABLE,
  { faults: { execute: () => held.promise } },
  { atOnce: atOnce('Outcome not known yet') },
  { atOnce: atOnce('The first one still runs') },
  () => held.resolve({ outcome: 'UNKNOWN', reason: 'timeout' }),
  { faults: {} },
  [CREATE, 'The shopper is needed', { body: smallest('4000000000003220', AUTHENTICATION) }],
];

const BUDGET_MS = '400';

export const MERCHANT_RUNS: Run[] = [
  [{}, [...OUTCOMES, ...MALFORMED, ...WEBHOOKS, ...FAULTS, ...REJECTIONS]],
  [{ REQUEST_BUDGET_MS: BUDGET_MS, PROVIDER_TIMEOUT_MS: BUDGET_MS }, HELD],
];
