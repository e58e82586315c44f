/**
 * What happened in the golden folder: every event type, every state of a payment, endpoint and operation,
 * each by the road that a user takes. Each request is kept with its response.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import type { Provider } from '../../command-api/provider/port.ts';
import { runCli } from '../support/cli.ts';
import {
  APPROVED,
  type Asking,
  type CommandResponse,
  type InProcess,
  payment,
  signToken,
  token,
} from '../support/in-process.ts';
import { opening } from '../support/opening-provider.ts';
import { acknowledge, backUp, putBack } from '../support/put-back.ts';
import { until } from '../support/until.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import { openOver, RECEIVER, SETTINGS } from './world.ts';

/** One request of a merchant's, with what it was answered. */
export type Recorded = {
  merchant: string;
  path: string;
  key: string | undefined;
  body: unknown;
  status: number;
  headers: Record<string, unknown>;
  text: string;
};

const KEPT_HEADERS = ['etag', 'location', 'retry-after', 'idempotent-replayed', 'content-type'];

export const keptHeaders = (headers: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
  );

type Located = CommandResponse & { id: string };

/** The requests of a story, in their order. */
const tell = (service: InProcess, recorded: Recorded[]) => {
  const send = async (
    path: string,
    body: unknown,
    { merchant = 'm_test', key }: { merchant?: string; key?: string } = {},
  ): Promise<Located> => {
    const asking: Asking = { token: await token(merchant), ...(key !== undefined && { key }) };
    const response = await service.ask('POST', `/api/v1/payments${path}`, body, asking);
    const { status, headers, text, json } = response;
    recorded.push({ merchant, path, key, body, status, headers: keptHeaders(headers), text });
    const located = String(headers.location ?? '')
      .split('/')
      .at(-1);
    return { ...response, id: json.paymentId ?? located };
  };
  const create = (fields: object = {}, asking: { merchant?: string; key?: string } = {}) =>
    send('', payment({ ...fields }), asking);
  const change = (verb: string, id: string, body?: object, key?: string) =>
    send(`/${id}/${verb}`, body, { ...(key !== undefined && { key }) });
  return { send, create, change };
};

type Story = ReturnType<typeof tell>;

const typesOf = async (service: InProcess, id: string): Promise<string[]> => {
  const asking = { token: await token('*', 'audit:read') };
  const path = `/audit/v1/payments/${id}/events`;
  const { json } = await service.ask('GET', path, undefined, asking);
  return (json.events as { type: string }[]).map(({ type }) => type);
};

const usualLives = async ({ create, change }: Story): Promise<void> => {
  const partly = await create({ merchantReference: 'order-1' }, { key: 'create-1' });
  await change('capture', partly.id, { captureAmount: 1500, reason: 'sent in part' }, 'capture-1');
  await change('capture', partly.id, { captureAmount: 1 }, 'capture-2');
  await change(
    'refund',
    partly.id,
    { refundAmount: 500, reason: 'one item came back' },
    'refund-1',
  );
  await change('refund', partly.id, { refundAmount: 2000 }, 'refund-2');
  const sale = await create({ captureNow: true, descriptor: 'GOLDEN SHOP' }, { key: 'sale-1' });
  await change('refund', sale.id, undefined, 'refund-1');
  await change('refund', sale.id, undefined, 'refund-2');
  const voided = await create({ amount: 1 }, { key: 'create-2' });
  await change('void', voided.id, undefined, 'void-1');
  await change('void', voided.id, undefined, 'void-2');
  await create({ amount: 99_999_999, merchantReference: 'ünïcode → 漢字 ' }, { key: 'create-3' });
  await create({ amount: 99_999_999 + 1 }, { key: 'create-4' });
  await create({ currency: 'EUR' }, { key: 'create-5' });
  await create({ amount: 6000 }, { merchant: 'm_small', key: 'create-1' });
  await create({ number: '5555555555554444' }, { merchant: 'm_small' });
  await create({ number: APPROVED, captureNow: true }, { merchant: 'm_small', key: 'create-2' });
  await create(
    { number: '378282246310005', cvv: '1234' },
    { merchant: 'm_other', key: 'create-1' },
  );
  await create({ amount: 0 });
};

const DECLINED = ['0002', '9995', '9987', '9979', '0069', '0127', '0119'];

const declines = async ({ create, change, send }: Story): Promise<void> => {
  for (const end of DECLINED)
    await create({ number: `400000000000${end}` }, { key: `declined-${end}` });
  await create({ number: '4242424242424241', captureNow: true }, { key: 'declined-luhn' });
  const captureDeclined = await create({ number: '4000000000004244' }, { key: 'create-4244' });
  await change('capture', captureDeclined.id, undefined, 'capture-1');
  const refundDeclined = await create(
    { number: '4000000000004251', captureNow: true },
    { key: 'create-4251' },
  );
  await change('refund', refundDeclined.id, { refundAmount: 100 }, 'refund-1');
  const card = { holderName: 'Jane Doe', token: 'tok_visa' };
  const byToken = (name: string) => ({
    amount: 4200,
    currency: 'USD',
    captureNow: true,
    paymentMethod: { type: 'CARD', card: { ...card, token: name } },
  });
  for (const name of ['tok_visa', 'tok_amex', 'tok_declined'])
    await send('', byToken(name), { key: `token-${name}` });
};

const uncertainties = async (service: InProcess, { create, change }: Story): Promise<void> => {
  const { faults } = service;
  for (const key of ['unreachable', 'unreachable'])
    await create({ number: '4000000000004210' }, { key });
  faults.next('not sent');
  await create({}, { key: 'second-attempt' });
  await create({}, { key: 'second-attempt' });
  const voidFirst = await create({}, { key: 'void-later' });
  faults.next('not sent');
  await change('void', voidFirst.id, undefined, 'void-1');
  await change('void', voidFirst.id, undefined, 'void-1');
  faults.next('answer lost');
  await create({ captureNow: true }, { key: 'answer-lost' });
  await create({ captureNow: true }, { key: 'answer-lost' });
  faults.next('call lost');
  await create({}, { key: 'fenced' });
  await create({}, { key: 'fenced' });
};

/** Two persons' equal words; with `persons` of one alone it is a request. */
const resolve = async (
  service: InProcess,
  id: string,
  outcome: string,
  persons = ['ann', 'bob'],
): Promise<void> => {
  for (const [at, sub] of persons.entries()) {
    const asking = { token: await signToken({ merchant_id: '*', sub, scope: 'ops:resolve' }) };
    const body = { outcome, evidence: `letter of ${sub}`, withoutFence: outcome === 'declined' };
    const path = `/ops/v1/payments/${id}/resolve`;
    await until(`${sub} has said it`, async () => {
      const { status } = await service.ask('POST', path, body, asking);
      return status === (at === 0 ? 202 : 200);
    });
  }
};

/** Resolved by hand, and the provider said the same, or other, afterwards. */
const confirmedAndContradicted = async (
  service: InProcess,
  { create, change }: Story,
): Promise<void> => {
  const { faults } = service;
  const confirmed = await create({}, { key: 'by-hand-1' });
  const contradicted = await create({ captureNow: true }, { key: 'by-hand-2' });
  faults.respondsToLookUps = false;
  faults.next('answer lost');
  await change('capture', confirmed.id, undefined, 'capture-1');
  faults.next('answer lost');
  await change('refund', contradicted.id, { refundAmount: 900 }, 'refund-1');
  await resolve(service, confirmed.id, 'approved');
  await resolve(service, contradicted.id, 'declined');
  faults.respondsToLookUps = true;
  await service.restart();
  for (const [id, type] of [
    [confirmed.id, 'PaymentOutcomeConfirmed'],
    [contradicted.id, 'PaymentOutcomeContradicted'],
  ] as const)
    await until(`${type} is there`, async () => (await typesOf(service, id)).includes(type));
};

/** What stays open for good: the provider gives no answer. */
const leftOpen = async (service: InProcess, { create, change }: Story): Promise<void> => {
  const { faults } = service;
  const refunded = await create({ captureNow: true }, { key: 'open-refund' });
  const [unconfirmed, requested] = [
    await create({}, { key: 'by-hand-3' }),
    await create({}, { key: 'by-hand-4' }),
  ];
  faults.respondsToLookUps = false;
  faults.next('answer lost');
  await create({ amount: 777 }, { key: 'open-create' });
  faults.next('call lost');
  await change('refund', refunded.id, { refundAmount: 300 }, 'refund-1');
  for (const { id } of [unconfirmed, requested]) {
    faults.next('call lost');
    await change('capture', id, undefined, 'capture-1');
  }
  await resolve(service, unconfirmed.id, 'approved');
  await resolve(service, requested.id, 'declined', ['ann']);
};

const LATER = ['4277', '4285', '4293', '4301', '4319', '4327'];
const LATER_EVENTS = [
  'PaymentAuthorizationExpired',
  'PaymentRefundFailed',
  'PaymentRefundObserved',
  'PaymentDisputed',
  'PaymentDisputeClosed',
  'PaymentDisputeClosed',
];

const laterResults = async (service: InProcess, { create, change }: Story): Promise<void> => {
  for (const [at, end] of LATER.entries()) {
    const fields = { number: `400000000000${end}`, captureNow: end !== '4277' };
    const made = await create(fields, { key: `later-${end}` });
    if (end === '4285') await change('refund', made.id, { refundAmount: 250 }, 'refund-1');
    await until(`${end} is told`, async () =>
      (await typesOf(service, made.id)).includes(LATER_EVENTS[at] ?? ''),
    );
    if (end === '4301') await change('refund', made.id, { refundAmount: 100 }, 'refund-1');
  }
};

const references = async (service: InProcess, { create }: Story): Promise<void> => {
  const order = { merchantReference: 'order-unique', captureNow: true };
  service.faults.next('not sent');
  await create(order, { merchant: 'm_unique', key: 'first' });
  await create(order, { merchant: 'm_unique', key: 'second' });
  await create({ ...order, amount: 1 }, { merchant: 'm_unique', key: 'third' });
  await create(order, { merchant: 'm_unique' });
};

const ENDPOINTS = '/api/v1/webhook-endpoints';

/** The endpoint that is disabled from its first moment on, so that all its messages wait. */
export const WAITS = 'waits';
export const EVERY_TYPE = [
  'created',
  'authorized',
  'captured',
  'voided',
  'refunded',
  'failed',
  'capture_failed',
  'void_failed',
  'refund_failed',
  'authorization_expired',
  'refund_reversed',
  'disputed',
  'dispute_closed',
].map((name) => `payment.${name}`);

/** Secrets of the endpoints, by their id. */
export type Secrets = Record<string, string>;

const endpoints = async (service: InProcess, url: string): Promise<Secrets> => {
  const secrets: Secrets = {};
  const ask = async (merchant: string, method: string, path: string, body?: object) =>
    service.ask(method, `${ENDPOINTS}${path}`, body, { token: await token(merchant) });
  const register = async (merchant: string, body: object): Promise<string> => {
    const { json } = await ask(merchant, 'POST', '', body);
    secrets[json.id as string] = json.secret as string;
    return json.id as string;
  };
  const away = `http://${RECEIVER.host}:${RECEIVER.port + 1}/hook?token=abc`;
  await register('m_test', { url: away, eventTypes: ['payment.captured', 'payment.refunded'] });
  const waiting = await register('m_test', {
    url: `http://${RECEIVER.host}:${RECEIVER.port}/hook`,
    description: WAITS,
    eventTypes: EVERY_TYPE,
  });
  await ask('m_test', 'PATCH', `/${waiting}`, { status: 'DISABLED' });
  const deleted = await register('m_test', { url: away });
  await ask('m_test', 'DELETE', `/${deleted}`);
  const accepts = await register('m_other', { url });
  await ask('m_other', 'POST', `/${accepts}/rotate-secret`, { oldExpiresInHours: 24 });
  await ask('m_other', 'POST', `/${accepts}/test`);
  await ask('m_other', 'PATCH', `/${accepts}`, { description: 'accepts' });
  await ask('m_other', 'PATCH', `/${accepts}`, { status: 'DISABLED' });
  await ask('m_other', 'PATCH', `/${accepts}`, { status: 'ENABLED', resumeFrom: 'now' });
  return secrets;
};

const auditors = async (service: InProcess, id: string): Promise<void> => {
  const all = { token: await signToken({ merchant_id: '*', sub: 'auditor', scope: 'audit:read' }) };
  for (const path of [`/payments/${id}/events`, '/payments?q=order-1', '/verify'])
    await service.ask('GET', `/audit/v1${path}`, undefined, all);
};

/** The key of a sale that only the provider knows. */
export const LOST = 'lost-by-the-restore';

/** Restores the log to a moment before a sale, and opens it: the provider knows one sale more. */
const restored = async (service: InProcess, { create }: Story): Promise<void> => {
  backUp(service);
  await create({ captureNow: true, amount: 4711 }, { key: LOST });
  await putBack(service);
  await acknowledge(service);
};

/** Tells the whole story; the data folder that it leaves is put at `target`. */
export const tellStory = async (
  target: string,
): Promise<{ requests: Recorded[]; secrets: Secrets }> => {
  const requests: Recorded[] = [];
  const first = { IDEMPOTENCY_SECRET: SETTINGS.IDEMPOTENCY_SECRET_PREVIOUS };
  let opens = false;
  const provider = (own: Provider): Provider => {
    const opener = opening(own);
    return { ...own, execute: (...call) => (opens ? opener : own).execute(...call) };
  };
  await using receiver = await startReceiver();
  let secrets: Secrets = {};
  {
    const { IDEMPOTENCY_SECRET_PREVIOUS: _, ...before } = { ...SETTINGS, ...first };
    await using service = await openOver(undefined, before, provider);
    const story = tell(service, requests);
    await usualLives(story);
    await declines(story);
    await references(service, story);
    await service.restart(async (folder) => {
      expect(await runCli(['keys', 'rotate', '--data', folder])).toMatchObject({ code: 0 });
      keep(folder, target);
    });
  }
  {
    await using service = await openOver(target, {}, provider);
    const story = tell(service, requests);
    secrets = await endpoints(service, receiver.url);
    await story.create({}, { key: 'create-1' });
    await story.create({ merchantReference: 'order-1' }, { key: 'create-1' });
    const sold = await story.create({ captureNow: true }, { merchant: 'm_other', key: 'notified' });
    await until('the message is accepted', () =>
      receiver.received.some(({ json }) => json.data.payment?.paymentId === sold.id),
    );
    const accepts = Object.keys(secrets).at(-1);
    const since = { since: sold.json.createdAt };
    const asking = { token: await token('m_other') };
    await service.ask('POST', `${ENDPOINTS}/${accepts}/resend`, since, asking);
    await uncertainties(service, story);
    await laterResults(service, story);
    opens = true;
    await story.create({}, { key: 'opened' });
    opens = false;
    await auditors(service, sold.id);
    await restored(service, story);
    await confirmedAndContradicted(service, story);
    await leftOpen(service, story);
    await service.restart((folder) => keep(folder, target));
  }
  return { requests, secrets };
};

/** The files of a folder whose service has stopped. */
export const keep = (folder: string, target: string): void => {
  rmSync(target, { recursive: true, force: true });
  cpSync(folder, target, { recursive: true });
  for (const left of ['events.backup', 'service.lock', 'service.log'])
    rmSync(join(target, left), { force: true });
};
