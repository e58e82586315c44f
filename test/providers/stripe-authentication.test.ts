/** gaps §21: Stripe's own 3-D Secure, over its double. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { createLogger } from '../../shared/runtime/log.ts';
import {
  type CommandResponse,
  type InProcess,
  idOf,
  openInProcess,
  PAYMENTS,
  payment,
  storedTexts,
} from '../support/service-in-process.ts';
import { openOverStripe, reconcile } from '../support/stripe-service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { AWAITED_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const RETURN_URL = 'https://shop.example/back?order=7';
const NEEDS_SHOPPER = 'pm_card_authenticationRequired';
const NOT_AUTHENTICATED = { failureCode: 'AUTHENTICATION_REQUIRED', advice: 'AUTHENTICATE' };

const over = await openOverStripe();
const { double, service, intentOf } = over;
const { books } = double;
const short = await openInProcess({
  ...over.settings,
  AUTHENTICATION_TIMEOUT_MS: '1000',
});
afterAll(async () => {
  await short[Symbol.asyncDispose]();
  await over[Symbol.asyncDispose]();
});

const create = (at: InProcess, fields: object = {}, card: object = {}, key?: string) => {
  const authentication = { returnUrl: RETURN_URL };
  const paymentMethod = {
    type: 'CARD',
    card: { token: NEEDS_SHOPPER, holderName: 'Jane Doe', authentication, ...card },
  };
  return at.ask('POST', PAYMENTS, payment({ paymentMethod, ...fields }), { ...(key && { key }) });
};
const confirmOf = (paymentId: string) =>
  double.received.findLast(({ path }) => path.includes(`${intentOf(paymentId).id}/confirm`))
    ?.params;
const urlIn = ({ json }: CommandResponse) => (json.nextAction as { url?: string } | undefined)?.url;
const failureIn = ({ json }: CommandResponse) =>
  (json.transactions as { failure?: object }[] | undefined)?.[0]?.failure;

/** Also what is to come later is 200. */
const statusAfterNotice = async (paymentId: string): Promise<string> => {
  const object = { object: 'payment_intent', metadata: { paymentId } };
  const body = JSON.stringify({ id: 'evt_1', type: 'payment_intent.any', data: { object } });
  expect((await over.deliver(body)).status).toBe(200);
  return (await service.get(paymentId)).json.status;
};
const ended = async (at: InProcess, id: string): Promise<CommandResponse> => {
  await until('it has its outcome', async () => (await at.get(id)).json.status !== 'PENDING');
  return at.get(id);
};

describe('Stripe wants the shopper', () => {
  test.each([
    [false, 'AUTHORIZED'],
    [true, 'CAPTURED'],
  ])('captureNow %s: 202 with its address, and %s by its notice', async (captureNow, status) => {
    const ask = () => create(service, { captureNow }, {}, `notice-${status}`);
    const response = await ask();
    expect([response.status, response.json.status]).toEqual([202, 'PENDING']);
    const id = idOf(response);
    expect(urlIn(response)).toBe(intentOf(id).next_action?.redirect_to_url?.url);
    const again = await ask();
    expect([again.status, again.text]).toEqual([202, response.text]);
    expect(await statusAfterNotice(id)).toBe('PENDING');
    books.authenticate(intentOf(id).id, true);
    expect(await statusAfterNotice(id)).toBe(status);
    expect((await service.get(id)).json.nextAction).toBeUndefined();
    const repeat = await ask();
    expect([repeat.status, repeat.json.status]).toEqual([200, status]);
  });

  test('the confirm asks for an address, and not for Stripe.js, also by a ConfirmationToken', async () => {
    const confirmation = books.makeToken('ctoken', NEEDS_SHOPPER);
    const response = await create(service, {}, { token: confirmation });
    expect(response.status).toBe(202);
    const form = {
      confirmation_token: confirmation,
      return_url: RETURN_URL,
      use_stripe_sdk: 'false',
      'expand[0]': 'latest_charge',
    };
    expect(confirmOf(idOf(response))).toEqual(new Map(Object.entries(form)));
  });

  test('a repeat meets the outcome that no notice told of', async () => {
    const id = idOf(await create(service, {}, {}, 'untold'));
    books.authenticate(intentOf(id).id, true);
    const again = await create(service, {}, {}, 'untold');
    expect([again.status, again.json.status]).toEqual([200, 'AUTHORIZED']);
  });
});

describe('who fails', () => {
  const failed = async () => {
    const id = idOf(await create(service));
    const { id: reference } = intentOf(id);
    books.authenticate(reference, false);
    const payAgain = () => books.confirm(reference, new Map([['payment_method', 'pm_card_visa']]));
    return { id, payAgain };
  };

  test('is declined, and holds no secret by which the PaymentIntent could still be confirmed', async () => {
    const { id, payAgain } = await failed();
    expect(await statusAfterNotice(id)).toBe('FAILED');
    expect(failureIn(await service.get(id))).toMatchObject(NOT_AUTHENTICATED);
    expect(intentOf(id).status).toBe('canceled');
    expect([payAgain().status, intentOf(id).latest_charge?.status]).toEqual([400, 'failed']);
  });

  test('stays PENDING while the PaymentIntent cannot be canceled, for it could still be confirmed', async () => {
    const { id, payAgain } = await failed();
    double.plan('cancel', '500 before acting');
    expect(await statusAfterNotice(id)).toBe('PENDING');
    payAgain();
    expect(await statusAfterNotice(id)).toBe('AUTHORIZED');
  });
});

test('a shopper who does not come in time: FAILED by the fence, and Stripe takes it no more', async () => {
  const id = idOf(await create(short, {}, {}, 'late'));
  const got = await ended(short, id);
  expect([got.json.status, failureIn(got)]).toEqual(['FAILED', NOT_AUTHENTICATED]);
  expect(intentOf(id)).toMatchObject({ status: 'canceled', cancellation_reason: 'abandoned' });
  expect(books.authenticate(intentOf(id).id, true).status).toBe(400);
  const again = await create(short, {}, {}, 'late');
  expect([again.status, again.json.failure]).toEqual([402, NOT_AUTHENTICATED]);
});

const MERCHANT = { source: { storeId: 's', initiatedBy: 'MERCHANT' } };
test.each<[string, object, string, number, string | undefined]>([
  ['without authentication', {}, NEEDS_SHOPPER, 402, undefined],
  ['of the merchant, off session', MERCHANT, NEEDS_SHOPPER, 402, 'true'],
  ['of the merchant, off session', MERCHANT, 'pm_card_visa', 200, 'true'],
  ['without authentication', {}, 'pm_card_visa', 200, undefined],
])('the shopper is not asked: a payment %s (%j) by %s is %i', async (...row) => {
  const [, fields, token, status, offSession] = row;
  const response = await create(service, fields, { authentication: null, token });
  expect(response.status).toBe(status);
  if (status === 402) expect(response.json.failure).toMatchObject(NOT_AUTHENTICATED);
  const { params } = double.received.findLast(({ step }) => step === 'confirm') ?? {};
  expect(params?.get('off_session')).toBe(offSession);
});

test('M5: log and Stripe agree on who came, who failed and who was too late', async () => {
  await using other = await openOverStripe({ AUTHENTICATION_TIMEOUT_MS: String(AWAITED_MS) });
  const own = other.service;
  const ids: string[] = [];
  for (const comes of [true, false, undefined]) {
    ids.push(idOf(await create(own)));
    const last = [...other.double.books.intents.keys()].at(-1) ?? '';
    if (comes !== undefined) other.double.books.authenticate(last, comes);
  }
  const statuses: string[] = [];
  for (const id of ids) statuses.push((await ended(own, id)).json.status);
  expect(statuses).toEqual(['AUTHORIZED', 'FAILED', 'FAILED']);
  expect(await reconcile(own)).toMatchObject({ ok: true, differences: [], notCompared: 0 });
});

test('the address and its secret are in no file and no log line', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'log');
  const { log, flush } = createLogger({ level: 'trace', destination: { file } });
  await using other = await openOverStripe({}, log);
  const own = other.service;
  for (const key of ['waits', 'comes']) await create(own, {}, {}, key);
  expect(urlIn(await create(own, {}, {}, 'waits'))).toMatch(/_secret_x$/);
  for (const id of other.double.books.intents.keys()) other.double.books.authenticate(id, true);
  expect((await create(own, {}, {}, 'comes')).json.status).toBe('AUTHORIZED');
  flush();
  const files = storedTexts(own);
  expect(files.join('')).toContain('PaymentAuthenticationRequested');
  const texts = [...files, readFileSync(file, 'utf8')];
  expect(texts.filter((text) => /_secret_|hooks\.stripe\.com/.test(text))).toEqual([]);
  folder.remove();
});
