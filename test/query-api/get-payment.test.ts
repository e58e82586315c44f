/** GET /api/v1/payments/{paymentId}: every row of the interface's error table. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { createBodies } from '../../personal-data/opener.ts';
import { behindTheStream, getPayment } from '../../query-api/get-payment.ts';
import { StoreUnavailable } from '../../shared/event-store/errors.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { appendPayment, timeOf, wholeLife } from '../support/payment-events.ts';
import { openNothing } from '../support/personal-data.ts';
import { readModelsIn } from '../support/read-models-here.ts';
import {
  expectError,
  expectResponseHeaders,
  idOf,
  PAYMENTS,
  serviceOfTests,
  timeless,
  token,
} from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const UNOPENED = { openText: openNothing, bodies: createBodies(openNothing) };

const service = await serviceOfTests();
const paymentId = idOf(await service.create());

const NO_ID = ['paymentId is empty; the list is at /api/v1/payments, without a slash at its end'];
const ID_FORM = ['paymentId must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -'];

describe('interface, get: 200', () => {
  test.each<[string, object]>([
    ['an authorization', {}],
    ['a sale', { captureNow: true }],
  ])('%s: the very bytes of its POST, and the revision as ETag', async (_name, fields) => {
    const created = await service.create(fields);
    const response = await service.get(idOf(created));
    expect(response.status).toBe(200);
    expect(response.text).toBe(created.text);
    expect(response.headers.etag).toBe(created.headers.etag);
    expectResponseHeaders(response);
  });

  test('GETs on one connection get their responses in turn, also after one with a large body', async () => {
    const created = await service.create();
    const authorization = `Bearer ${await token('m_test')}`;
    const head = `GET ${PAYMENTS}/${idOf(created)} HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\n`;
    const socket = connect(Number(new URL(await service.listen()).port), '127.0.0.1');
    const body = ' '.repeat(1_000_000);
    socket.write(`${head}\r\n${head}content-length: ${body.length}\r\n\r\n${body}`);
    socket.write(`${head}connection: close\r\n\r\n`);
    const responses = (await text(socket)).split('HTTP/1.1 200 OK').slice(1);
    expect(responses.map((response) => response.split('\r\n\r\n')[1])).toEqual(
      Array(3).fill(created.text),
    );
  });
});

test('gaps §9: a document that was read before and is behind is not given', async () => {
  const created = await service.create();
  const id = idOf(created);
  expect((await service.get(id)).text).toBe(created.text);
  service.readModels.hold();
  const captured = await service.change('capture', id);
  expect((await service.get(id)).text).toBe(captured.text);
  service.readModels.release();
});

describe('gaps §9: a document at revision 1 of a longer stream, where others append', () => {
  const last = wholeLife('pay_1').length - 1;
  test.each<[string, number]>([
    ['is not given while it is parked', last],
    ['is not given where it is behind', last],
    ['is given with the event store out of reach', 1],
  ])('%s', async (what, revision) => {
    const folder = temporaryFolder();
    const store = memoryEventStore();
    const readModels = readModelsIn(folder.path, 'read models.db');
    const stored = await appendPayment(store, 'pay_1', wholeLife('pay_1'), timeOf);
    const readModel = foldStream(stored.slice(0, 2), foldReadModel);
    if (readModel === undefined) throw new Error('a read model of nothing');
    const document = { kind: 'readModel', readModel } as const;
    const park = { kind: 'park', paymentId: 'pay_1', revision: 2, reason: 'poison' } as const;
    const isParked = what.endsWith('parked');
    const changes = isParked ? [document, { ...park, time: timeOf(2) }] : [document];
    await readModels.apply(changes, null, '3');
    if (revision === 1) store.failWith(new StoreUnavailable('down'));
    const behind = isParked ? () => false : behindTheStream(store);
    const deps = { store, readModels, behind, ...UNOPENED };
    const found = await getPayment(deps, 'pay_1', readModel.merchantId);
    expect(found?.revision).toBe(revision);
    await readModels.close();
    folder.remove();
  });
});

describe('interface, get: errors', () => {
  test.each([
    ['empty', ''],
    ['%2F', 'a%2Fb'],
    ['a broken percent escape', '%zz'],
  ])('400: an id that is malformed: %s (gaps §2)', async (_name, id) => {
    expectError(await service.get(id), 400, 'INVALID_PAYMENT_ID', id === '' ? NO_ID : ID_FORM);
    // Behind the token, as every check of the shape.
    expectError(await service.get(id, { token: null }), 401, 'UNAUTHORIZED', [
      'the Authorization header is required',
    ]);
  });

  test('401: two Authorization headers, valid ones too', async () => {
    const good = `Bearer ${await token('m_test')}`;
    const twice = { token: null, headers: { authorization: [good, good] } };
    expectError(await service.get(paymentId, twice), 401, 'UNAUTHORIZED', [
      'the Authorization header must be: Bearer <token>',
    ]);
  });

  test("404: unknown, and another merchant's in the same bytes", async () => {
    const unknown = await service.get('pay_00000000000000000000000000');
    expectError(unknown, 404, 'PAYMENT_NOT_FOUND');
    const foreign = await service.get(paymentId, { token: await token('m_other') });
    expect(timeless(foreign)).toEqual(timeless(unknown));
  });
});
