/**
 * Merchants generate clients from docs/openapi.json. It is made from the schemas and from recorded
 * responses of the service, and every response that a test receives is checked against it.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { generatedDocs } from '../../scripts/openapi/generated.ts';
import type { RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import {
  type Message,
  paymentMessage,
  SUBSCRIBABLE_TYPES,
  TEST_TYPE,
} from '../../webhooks/message.ts';
import { expectDescribed, type Received } from '../support/once/api-description.ts';
import { authorized, captured, created, newEvent, placed } from '../support/payment-events.ts';
import { openNothing } from '../support/personal-data.ts';

type Content = Record<
  string,
  { schema: { $ref: string }; examples?: Record<string, { value: unknown }> }
>;
type Operation = {
  requestBody?: { content: Content };
  responses: Record<string, { content: Content }>;
};

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const description = JSON.parse(read('docs/openapi.json'));

describe('the committed documents', () => {
  let generated: Record<string, string>;
  beforeAll(async () => {
    generated = await generatedDocs();
  });

  test('are up to date with schemas and service; if not: npm run docs:openapi', () => {
    for (const [file, text] of Object.entries(generated)) expect(read(file)).toBe(text);
    expect(Object.keys(generated)).toContain('docs/openapi.json');
  });
});

describe('what is described is what happens', () => {
  const documents = [description, JSON.parse(read('docs/openapi-audit.json'))];
  type Described = { description?: string; parameters?: { $ref?: string }[] };
  const operations = documents.flatMap(({ paths }) =>
    Object.entries(paths as Record<string, Record<string, Described>>).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([method]) => ['get', 'post', 'patch', 'delete'].includes(method))
        .map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
    ),
  );

  test('every operation has a description', () => {
    const without = operations.filter(({ operation }) => !operation.description);
    expect(without.map(({ name }) => name)).toEqual([]);
  });

  test('every name in a path is a parameter of its operation', () => {
    for (const { name, operation } of operations) {
      const named = [...name.matchAll(/\{(\w+)\}/g)].map(([, id = '']) => id.toLowerCase());
      const refs = (operation.parameters ?? []).map(({ $ref = '' }) => $ref.toLowerCase());
      expect([name, refs]).toEqual([
        name,
        expect.arrayContaining(named.map((id) => `#/components/parameters/${id}`)),
      ]);
    }
  });

  describe('a create', () => {
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    ajv.addSchema({ $id: 'api', components: description.components });
    const fits = (name: string, body: object) =>
      ajv.validate(`api#/components/schemas/${name}`, body);
    const { examples } =
      description.paths['/api/v1/payments'].post.requestBody.content['application/json'];
    const requests = Object.values(examples as Record<string, { value: CreateBody }>).map(
      ({ value }) => value,
    );
    type CreateBody = { paymentMethod: { card: object }; metadata?: object };
    const cards = requests.map(({ paymentMethod }) => paymentMethod.card);
    const withCard = (card: object, more: object = {}) => ({
      ...requests[0],
      ...more,
      paymentMethod: { type: 'CARD', card },
    });

    test.each(['number', 'token', 'authentication', 'threeDSecure'])(
      'has an example with %s',
      (field) => {
        expect(cards.filter((card) => field in card)).not.toEqual([]);
      },
    );

    test('has an example with metadata', () => {
      expect(requests.filter(({ metadata }) => metadata !== undefined)).not.toEqual([]);
    });

    test('fits with number or token and with threeDSecure or authentication, never with both', () => {
      const [number, token] = [
        { number: '4242424242424242', holderName: 'A', expiryMonth: '12', expiryYear: '2030' },
        { token: 'tok_visa', holderName: 'A' },
      ];
      const asking = { authentication: { returnUrl: 'https://shop.example/' } };
      const threeDSecure = cards.find((card) => 'threeDSecure' in card);
      const byMerchant = { source: { storeId: 's', initiatedBy: 'MERCHANT' } };
      for (const card of [number, token, { ...token, ...asking }, { ...number, ...asking }])
        expect([card, fits('PaymentRequest', withCard(card))]).toEqual([card, true]);
      expect(fits('PaymentRequest', withCard(token, byMerchant))).toBe(true);
      expect(fits('PaymentRequest', withCard({ ...number, ...token }))).toBe(false);
      expect(fits('PaymentRequest', withCard({ ...token, cvv: '123' }))).toBe(false);
      expect(fits('PaymentRequest', withCard({ ...threeDSecure, ...asking }))).toBe(false);
      expect(fits('PaymentRequest', withCard({ ...token, ...asking }, byMerchant))).toBe(false);
    });

    test('a resend fits with exactly one of since and eventId', () => {
      const [since, eventId] = ['2026-01-31T08:00:00Z', '00000000-0000-4000-8000-000000000000'];
      const bodies = [{ since }, { eventId }, { since, eventId }, {}];
      expect(bodies.map((body) => fits('WebhookResend', body))).toEqual([true, true, false, false]);
    });

    test('null, which counts as absent, fits where a field may be left out', () => {
      const none = { descriptor: null, captureNow: null, goodsType: null, merchantReference: null };
      expect(fits('PaymentRequest', { ...requests[0], ...none })).toBe(true);
      expect(fits('PaymentRequest', { ...requests[0], amount: null })).toBe(false);
      expect(fits('WebhookEndpointChange', { status: null, url: null })).toBe(true);
      expect(fits('CaptureRequest', { reason: null })).toBe(true);
      expect(fits('CaptureRequest', { captureAmount: null })).toBe(false);
    });
  });

  test('null is described where it is taken for an array', () => {
    const { productItems, previousFailures } =
      description.components.schemas.PaymentRequest.properties;
    expect([productItems.type, previousFailures.type]).toEqual([
      ['array', 'null'],
      ['array', 'null'],
    ]);
  });
});

test("components have the contract's own names", () => {
  const names = [
    ...['PaymentRequest', 'PaymentMethod', 'Card', 'ProductItem', 'Consumer', 'Address'],
    ...['Billing', 'Shipping', 'Source', 'PreviousFailure', 'PaymentResponse'],
    ...['PaymentMethodResponse', 'CardResponse', 'Transaction', 'Failure'],
    ...['PaymentFailureResponse', 'CaptureRequest', 'RefundRequest', 'ErrorBody'],
  ];
  expect(Object.keys(description.components.schemas)).toEqual(expect.arrayContaining(names));
});

test("every operation of the contract has the contract's statuses", () => {
  const statuses = Object.fromEntries(
    Object.entries(description.paths).flatMap(([path, operations]) =>
      Object.entries(operations as Record<string, { responses: object }>).map(
        ([method, { responses }]) => [`${method} ${path}`, Object.keys(responses).map(Number)],
      ),
    ),
  );
  const one = '/api/v1/payments/{paymentId}';
  const contract = {
    'post /api/v1/payments': [200, 400, 401, 402, 422, 500, 503],
    [`get ${one}`]: [200, 400, 401, 404, 500, 503],
    [`post ${one}/capture`]: [200, 400, 401, 404, 422, 500, 503],
    [`post ${one}/void`]: [200, 400, 401, 404, 422, 500, 503],
    [`post ${one}/refund`]: [200, 400, 401, 404, 422, 500, 503],
  };
  for (const [operation, expected] of Object.entries(contract)) {
    expect(statuses[operation]).toEqual(expect.arrayContaining(expected));
  }
});

test('every reference leads to an object of the document', () => {
  const references = [...read('docs/openapi.json').matchAll(/"\$ref": "#\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(100);
  for (const [, pointer = ''] of references) {
    const found = pointer.split('/').reduce((at, step) => Object(at)[step], description);
    expect([pointer, typeof found]).toEqual([pointer, 'object']);
  }
});

test.each(['docs/openapi.json', 'docs/openapi-audit.json'])(
  '%s: every example fits its schema',
  (file) => {
    const document = JSON.parse(read(file));
    const ajv = new Ajv2020({ strict: false });
    formats.default(ajv);
    ajv.addSchema({ $id: 'api', components: document.components });
    // By its place each schema is compiled once, however many examples it has.
    const fits = ({ $ref }: { $ref: string }, value: unknown) => ajv.validate(`api${$ref}`, value);
    const bodies = Object.values(document.paths as Record<string, Record<string, Operation>>)
      .flatMap((operations) => Object.values(operations))
      .flatMap(({ requestBody, responses }) => [requestBody, ...Object.values(responses)])
      .flatMap((body) => Object.values(body?.content ?? {}));
    expect(bodies.length).toBeGreaterThan(50);
    for (const { schema, examples = {} } of bodies) {
      for (const [name, { value }] of Object.entries(examples)) {
        expect([name, fits(schema, value), ajv.errorsText()]).toEqual([name, true, 'No errors']);
      }
    }
  },
);

test('a message to a webhook endpoint fits its schema, and has a type that is described', async () => {
  const { webhooks, components } = description;
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv);
  ajv.addSchema({ $id: 'api', components });
  const events = [created({ captureNow: true }), authorized(), captured()];
  const readModel = foldReadModel(placed(events)) as PaymentReadModel;
  const recorded = { ...newEvent(captured()), revision: 2 } as unknown as RecordedPaymentEvent;
  const { body } = (await paymentMessage(recorded, readModel, openNothing)) as Message;
  const { $ref } = webhooks.paymentMessage.post.requestBody.content['application/json'].schema;
  expect([ajv.validate(`api${$ref}`, JSON.parse(body)), ajv.errorsText()]).toEqual([
    true,
    'No errors',
  ]);
  const { PaymentMessage, EndpointMessage } = components.schemas;
  const described = [PaymentMessage, EndpointMessage].flatMap((one) => one.properties.type.enum);
  expect(described.sort()).toEqual([...SUBSCRIBABLE_TYPES, TEST_TYPE].sort());
});

test('examples hold no card number but the test cards, and no token', () => {
  const numbers = new Set(read('docs/openapi.json').match(/\b\d{13,19}\b/g));
  numbers.delete(String(Number.MAX_SAFE_INTEGER));
  expect([...numbers].sort()).toEqual(['4000000000000002', '4242424242424242']);
  expect(read('docs/openapi.json')).not.toMatch(/eyJ[\w-]+\.eyJ/);
});

describe('a response that is not as the API describes fails the test that received it', () => {
  const path = '/api/v1/payments/{paymentId}';
  const good = (): Received => ({
    method: 'GET',
    path: '/api/v1/payments/pay_1',
    status: 200,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'request-id': '01KDX3CP000000000000000001',
      etag: '"1"',
    },
    text: JSON.stringify(
      description.paths[path].get.responses[200].content['application/json'].examples.authorized
        .value,
    ),
  });
  const withBody = (change: object): Received => ({
    ...good(),
    text: JSON.stringify({ ...JSON.parse(good().text), ...change }),
  });

  test.each<[string, Received, RegExp]>([
    ['a field that is not described', withBody({ cvv: '123' }), /additional properties/],
    ['a payment status that does not exist', withBody({ status: 'PAID' }), /allowed values/],
    ['a status that is not described', { ...good(), status: 201 }, /status is not described/],
    ['a missing header', { ...good(), headers: {} }, /content type/],
    [
      'a header without its form',
      { ...good(), headers: { ...good().headers, etag: 'W/1' } },
      /ETag is W\/1/,
    ],
  ])('%s', (_name, received, message) => {
    expect(() => expectDescribed(good())).not.toThrow();
    expect(() => expectDescribed(received)).toThrow(message);
  });
});
