/** gaps §21: the results of 3-D Secure that a merchant brings along. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { createLogger } from '../../shared/runtime/log.ts';
import { httpServer } from '../support/faulty-server.ts';
import { JANE } from '../support/provider-operations.ts';
import {
  expectError,
  idOf,
  openInProcess,
  PAYMENTS,
  payment,
  serviceOfTests,
  storedTexts,
} from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const CRYPTOGRAM = 'kept0nowhere1AAAABBBBCCCCDDDDEE=';
const KEPT = {
  version: '2.2.0',
  eci: '05',
  transactionId: '4bd1d5b8-7c1e-4b42-9d55-3f1a8c2e6b70',
  exemption: 'LOW_RISK',
};
const GIVEN = { ...KEPT, cryptogram: CRYPTOGRAM };

const service = await serviceOfTests();

const BY_NUMBER = { number: '4242424242424242', ...JANE };
const BY_TOKEN = { token: 'tok_visa', holderName: 'Jane Doe' };
const bodyWith = (threeDSecure: object | null, card: object = BY_NUMBER, fields: object = {}) =>
  payment({ ...fields, paymentMethod: { type: 'CARD', card: { ...card, threeDSecure } } });

describe('they are required whole, and in their forms', () => {
  const NONE = { version: null, eci: '', cryptogram: undefined, transactionId: null };
  const BASE64 = 'cryptogram must be 28 or 32 characters of base64';
  test.each<[string, object, string[]]>([
    ['an empty object', NONE, Object.keys(NONE).map((name) => `${name} is required`)],
    ['another version', { version: '1.0.2' }, ['version must be one of 2.1.0, 2.2.0, 2.3.1']],
    ['an eci of one digit', { eci: '5' }, ['eci must be two digits']],
    ['an eci that is a number', { eci: 5 }, ['eci must be a string']],
    ['a cryptogram of 24 characters', { cryptogram: 'A'.repeat(24) }, [BASE64]],
    ['one in the alphabet of addresses', { cryptogram: `${'_'.repeat(27)}=` }, [BASE64]],
    ['a transaction id of no UUID', { transactionId: 'x' }, ['transactionId must be a UUID']],
    ['another exemption', { exemption: 'RECURRING' }, ['exemption must be one of LOW_RISK, NONE']],
  ])('400: %s', async (_name, change, details) => {
    const response = await service.ask('POST', PAYMENTS, bodyWith({ ...GIVEN, ...change }));
    const named = details.map((detail) => `paymentMethod.card.threeDSecure.${detail}`);
    expectError(response, 400, 'INVALID_REQUEST', named);
  });

  test.each<[string, object, string]>([
    ['a reference', { merchantReference: CRYPTOGRAM }, 'merchantReference'],
    ['metadata, inside other text', { metadata: { mpi: `a ${CRYPTOGRAM} b` } }, 'metadata.mpi'],
    ['a text without its padding', { descriptor: CRYPTOGRAM.slice(0, -1) }, 'descriptor'],
    ['an unknown field', { mpi: { cavv: CRYPTOGRAM } }, 'an unknown field'],
    ['an unknown name', { [CRYPTOGRAM]: 1 }, 'an unknown field'],
  ])('400: the cryptogram in %s', async (_name, fields, field) => {
    for (const card of [BY_NUMBER, BY_TOKEN]) {
      const response = await service.ask('POST', PAYMENTS, bodyWith(GIVEN, card, fields));
      expectError(response, 400, 'INVALID_REQUEST', [`${field} must not hold the cryptogram`]);
    }
    // Without the results that it belongs to it is a text as any other.
    const { status } = await service.ask('POST', PAYMENTS, bodyWith(null, BY_NUMBER, fields));
    expect(status).toBe(200);
  });

  test('400: the cryptogram in the Idempotency-Key; the results beside authentication', async () => {
    const key = `k-${CRYPTOGRAM}`;
    const keyed = await service.ask('POST', PAYMENTS, bodyWith(GIVEN), { key });
    const where = ['Idempotency-Key must not hold the cryptogram'];
    expectError(keyed, 400, 'INVALID_REQUEST', where);
    const authentication = { returnUrl: 'https://shop.example/back' };
    const body = bodyWith(GIVEN, { ...BY_NUMBER, authentication });
    expectError(await service.ask('POST', PAYMENTS, body), 400, 'INVALID_REQUEST', [
      'paymentMethod.card must hold either threeDSecure or authentication',
    ]);
  });
});

test.each([
  ['a number', BY_NUMBER],
  ['a token', BY_TOKEN],
])('beside %s: the card shows all but the cryptogram, then and later', async (_name, card) => {
  const created = await service.ask('POST', PAYMENTS, bodyWith(GIVEN, card));
  const { status, json } = await service.get(idOf(created));
  expect([created.status, status]).toEqual([200, 200]);
  const shown = { card: { threeDSecure: KEPT }, encryptedCard: { threeDSecure: KEPT } };
  expect(created.json.paymentMethod).toMatchObject(shown);
  expect(json.paymentMethod).toMatchObject(shown);
  expect(created.text).not.toContain(CRYPTOGRAM);
});

test.each([
  ['a number', BY_NUMBER],
  ['a token', BY_TOKEN],
])('gaps §8: beside %s a repeat with other results is the same request', async (name, card) => {
  const key = `results ${name}`.replaceAll(' ', '-');
  const first = await service.ask('POST', PAYMENTS, bodyWith(GIVEN, card), { key });
  const other = bodyWith({ ...GIVEN, eci: '02', cryptogram: 'B'.repeat(32) }, card);
  const again = await service.ask('POST', PAYMENTS, other, { key });
  const without = await service.ask('POST', PAYMENTS, bodyWith(null, card), { key });
  expect([again.text, without.text]).toEqual([first.text, first.text]);
  expect(await service.ledger(idOf(first))).toHaveLength(1);
});

type SentCard = { threeDSecure?: object };

/** A provider that declines each operation, with a code of its own. */
const declining = async (providerFailureCode: string) => {
  const cards: SentCard[] = [];
  const server = await httpServer(async (request, response) => {
    const { method, url = '' } = request;
    if (method !== 'PUT') return response.writeHead(404).end();
    const { card, amount, currency } = JSON.parse(await text(request));
    cards.push(card);
    const operationId = url.split('/').at(-1);
    const outcome = { operationId, outcome: 'DECLINED', amount, currency };
    const codes = { failureCode: 'LOST_CARD', providerFailureCode, providerReference: 'ref_1' };
    return response.writeHead(200).end(JSON.stringify({ ...outcome, ...codes }));
  });
  return { ...server, cards };
};

test('the provider gets them in its one call; a cryptogram that it sends back is kept nowhere', async () => {
  const provider = await declining(CRYPTOGRAM);
  const folder = temporaryFolder();
  const file = join(folder.path, 'log');
  const { log, flush } = createLogger({ level: 'trace', destination: { file } });
  const own = await openInProcess({ PROVIDER_URL: provider.url }, log);
  try {
    const response = await own.ask('POST', PAYMENTS, bodyWith(GIVEN));
    expect([response.status, response.json.failure]).toEqual([
      402,
      { failureCode: 'LOST_CARD', advice: 'DO_NOT_RETRY' },
    ]);
    expect(provider.cards.map(({ threeDSecure }) => threeDSecure)).toEqual([GIVEN]);
    flush();
    const texts = [...storedTexts(own), readFileSync(file, 'utf8'), response.text];
    expect(texts.some((text) => text.includes('the provider declined'))).toBe(true);
    expect(texts.some((text) => text.includes(KEPT.transactionId))).toBe(true);
    expect(texts.filter((text) => text.includes(CRYPTOGRAM.slice(0, 20)))).toEqual([]);
  } finally {
    await own[Symbol.asyncDispose]();
    await provider.close();
    folder.remove();
  }
});
