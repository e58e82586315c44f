/**
 * What the topics promise to their readers: the form of a message, what is never in one, and that
 * a message of an older version still means the same. The pages under docs are held to it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormatsModule from 'ajv-formats';
import { parse } from 'yaml';
import { generatedTopicDocs } from '../../scripts/topics/generated.ts';
import { asPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { RecordedEvent } from '../../shared/event-store/port.ts';
import { PAYMENT_EVENT_TYPES, paymentSchemas, streamOf } from '../../shared/payment/events.ts';
import type { PaymentDetails } from '../../shared/payment/fields.ts';
import { project } from '../../shared/payment/fold.ts';
import { takeApart } from '../../shared/payment/response.ts';
import { newEventId } from '../../shared/runtime/ids.ts';
import { eventMessage, stateMessage } from '../../topics/messages.ts';
import { MESSAGE_VERSIONS } from '../../topics/schemas.ts';
import { textsIn } from '../support/every-detail.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { created, timeOf } from '../support/payment-events.ts';
import {
  allSampleMessages,
  EVERY_DETAIL,
  PRIVATE_VALUES,
  sampleMessages,
} from '../support/topic-samples.ts';

type Json = Record<string, unknown>;
const ROOT = new URL('../../', import.meta.url);
const SAMPLES = new URL('./topic-samples/', import.meta.url);
const textOf = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8');
const sampleOf = (file: string): Json => JSON.parse(readFileSync(new URL(file, SAMPLES), 'utf8'));

const messages = await allSampleMessages();
const events = messages.map(({ value }) => JSON.parse(value) as Json & { data: Json });

// The package is CommonJS: its function stands one level deeper than its types say.
const addFormats = addFormatsModule as unknown as (ajv: Ajv2020) => void;
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats(ajv);
for (const file of readdirSync(new URL('docs/schemas/', ROOT))) {
  ajv.addSchema(JSON.parse(textOf(`docs/schemas/${file}`)), `file:///docs/schemas/${file}`);
}
const expectValid = (schema: string, value: unknown): void => {
  const validate = ajv.getSchema(schema.replace('./', 'file:///docs/'));
  if (validate === undefined) throw new Error(`there is no schema ${schema}`);
  validate(value);
  expect(validate.errors ?? []).toEqual([]);
};

const CARD = {
  last4: '4242',
  holderName: 'x',
  cvvPresentDuringAttempt: true,
  expiryMonth: '12',
  expiryYear: '2030',
};

/** A create with these details, as the relay reads it. */
const storedCreate = async (details: PaymentDetails) => {
  const store = memoryEventStore();
  const context = { actor: 'a', requestId: 'r', correlationId: 'r', causationId: 'r' };
  const { group: _sealed, ...open } = takeApart({ card: CARD, details });
  const own = {
    id: newEventId(),
    time: timeOf(1),
    event: created(open),
    context,
  };
  const [event] = await store.append(streamOf('pay_1'), 'none', [own]);
  return asPaymentEvent(event as RecordedEvent);
};

describe('a message', () => {
  test('S7: holds nothing of what is private, in any byte of value, key or headers', () => {
    const bytes = messages.map(({ value, key, headers }) => JSON.stringify([value, key, headers]));
    const found = (hidden: string): boolean => bytes.some((text) => text.includes(hidden));
    const { group } = takeApart({ card: CARD, details: EVERY_DETAIL });
    const sealed = textsIn({ ...group, holderName: '' }).filter((text) => /given/.test(text));
    expect([...PRIVATE_VALUES, ...sealed].filter(found)).toEqual([]);
    expect(found('order-1')).toBe(true);
  });

  test('the payment that this is tried with has every field that an event can have', () => {
    const filled = (name: string): boolean =>
      textOf('test/support/topic-samples.ts').includes(name) ||
      textOf('test/support/payment-events.ts').includes(name);
    const names = PAYMENT_EVENT_TYPES.flatMap((type) => Object.keys(paymentSchemas[type].shape));
    expect(names.filter((name) => !filled(name))).toEqual([]);
    expect(new Set(PRIVATE_VALUES).size).toBe(PRIVATE_VALUES.length);
  });

  test('of a card has bin, last4 and brand, and the results of 3-D Secure where there are any', () => {
    const cards = events.filter(({ data }) => 'card' in data).map(({ data }) => data.card);
    expect(cards.length).toBeGreaterThan(0);
    const fields = cards.map((card) => Object.keys(card as Json).sort());
    const plain = ['bin', 'brand', 'last4'];
    expect(fields.filter((one) => !one.includes('threeDSecure'))).toContainEqual(plain);
    for (const one of fields) expect([plain, [...plain, 'threeDSecure']]).toContainEqual(one);
  });

  test('of an order shows what looks like a card number by its last four digits alone', async () => {
    const number = '5555 5555.5555/4444';
    const event = await storedCreate({
      merchantReference: `order ${number}`,
      productItems: [{ id: number, name: 'x', quantity: 1, unitPrice: 1, goodsType: 'DIGITAL' }],
      source: { storeId: number, externalMerchantId: `m-${number}` },
      metadata: { till: `no ${number}`, shop: 'north' },
    });
    const readModel = project(undefined, event);
    const seen = {
      merchantReference: 'order ...4444',
      productItems: [{ id: '...4444', quantity: 1, unitPrice: 1 }],
      source: { storeId: '...4444', externalMerchantId: 'm-...4444' },
      metadata: { till: 'no ...4444', shop: 'north' },
    };
    const inEvent = eventMessage(event, readModel, { partition: 0, number: 0 }).value;
    const inState = stateMessage(event, readModel, { partition: 0 }).value;
    expect(JSON.parse(inState).data).toMatchObject(seen);
    expect(JSON.parse(inEvent).data).toMatchObject(seen);
    // A hash may have four of its digits by chance.
    expect(inEvent + inState).not.toMatch(/5555\D?5555/);
  });

  test('of a create has each detail that is stored in the clear', () => {
    const { details } = takeApart({ card: CARD, details: EVERY_DETAIL });
    const ofIt = events.filter(({ subject }) => subject === 'pay_17');
    expect(ofIt.length).toBe(2);
    for (const { data } of ofIt) expect(data).toMatchObject(details);
  });

  test('is a CloudEvent whose attributes are texts with names that the rules allow', () => {
    for (const { data, ...attributes } of events) {
      for (const [name, value] of Object.entries(attributes)) {
        expect(name).toMatch(/^[a-z0-9]{1,20}$/);
        expect(typeof value).toBe('string');
      }
      expect(data).toEqual(expect.any(Object));
      expect(() => new URL(String(attributes.dataschema))).not.toThrow();
      expect(attributes.source).toMatch(/^\/(payments\/[A-Za-z0-9_.!~*'()%-]+|log)$/);
    }
    const names = events.map(({ source, id }) => `${source} ${id}`);
    expect(new Set(names).size).toBe(events.length);
  });

  test('repeats its attributes as headers, in ASCII', () => {
    for (const { value, headers, key } of messages) {
      const { data: _, datacontenttype: __, ...attributes } = JSON.parse(value);
      const { 'content-type': type, ...rest } = headers;
      expect(type).toBe('application/cloudevents+json');
      expect(Object.keys(rest)).toEqual(Object.keys(attributes).map((name) => `ce_${name}`));
      expect(headers.ce_id).toBe(attributes.id);
      expect(Object.values(headers).join('')).toMatch(/^[\x21-\x7e]+$/);
      expect(key).toBe(attributes.subject);
    }
  });

  test('has the order of the payment as text that sorts, and the number in the partition', () => {
    const ours = events.filter(
      ({ subject, type }) => subject === 'pay_1' && !/State/.test(String(type)),
    );
    const sequences = ours.map(({ sequence }) => String(sequence));
    expect([...sequences].sort()).toEqual(sequences);
    expect(sequences.map(Number)).toEqual(sequences.map((_, n) => n));
    expect(ours.map(({ partitionsequence }) => partitionsequence)).toEqual(
      sequences.map((_, n) => String(n)),
    );
    const states = events.filter(({ type }) => /State/.test(String(type)));
    expect(states.every((state) => !('partitionsequence' in state))).toBe(true);
    expect(states.map(({ sequence, data }) => Number(sequence) - Number(data.revision))).toEqual(
      states.map(() => 0),
    );
  });
});

describe('readers of an older version', () => {
  const files = Object.entries(MESSAGE_VERSIONS).flatMap(([type, version]) =>
    Array.from({ length: version }, (_, n) => `${type}.v${n + 1}.json`),
  );

  test('there is one frozen message for every type and version, and no other', () => {
    expect(readdirSync(SAMPLES).sort()).toEqual(files.sort());
  });

  test.each(files)('%s: the frozen message fits the schema of its version', (file) => {
    const sample = sampleOf(file);
    expectValid('./schemas/Envelope.v1.json', sample);
    expectValid(`./schemas/${file}`, sample.data);
    expect(`${sample.dataschema}`).toBe(
      `urn:payments:schema:${file.replace('.v', ':').replace('.json', '')}`,
    );
  });

  test("today's messages hold all that the frozen ones hold, with the same values", async () => {
    for (const [type, { value }] of await sampleMessages()) {
      const file = `${type}.v${MESSAGE_VERSIONS[type]}.json`;
      expect(JSON.parse(value)).toMatchObject(sampleOf(file));
    }
  });
});

describe('the pages about the topics', () => {
  test('docs/schemas and docs/asyncapi.yaml are what npm run docs:topics writes', () => {
    const generated = generatedTopicDocs();
    for (const [file, text] of Object.entries(generated))
      expect([file, textOf(file)]).toEqual([file, text]);
    const there = readdirSync(new URL('docs/schemas/', ROOT)).map((file) => `docs/schemas/${file}`);
    expect(there.filter((file) => !(file in generated))).toEqual([]);
  });

  test('every message fits the schema that it names', () => {
    for (const event of events) {
      expectValid('./schemas/Envelope.v1.json', event);
      expectValid(String(event.dataschema), event.data);
    }
  });

  const asyncApi = parse(textOf('docs/asyncapi.yaml'));
  const resolve = (ref: string): unknown => {
    if (!ref.startsWith('#/')) return ajv.getSchema(ref.replace('./', 'file:///docs/'));
    return ref
      .slice(2)
      .split('/')
      .reduce<unknown>((node, name) => (node as Json | undefined)?.[name], asyncApi);
  };
  const refsIn = (node: unknown): string[] => {
    if (typeof node !== 'object' || node === null) return [];
    const own = '$ref' in node ? [String(node.$ref)] : [];
    return [...own, ...Object.values(node).flatMap(refsIn)];
  };

  test('docs/asyncapi.yaml refers only to what is there', () => {
    expect(asyncApi.asyncapi).toBe('3.0.0');
    const refs = refsIn(asyncApi);
    expect(refs.length).toBeGreaterThan(40);
    expect(refs.filter((ref) => resolve(ref) === undefined)).toEqual([]);
  });

  const fits = (type: string, event: unknown): boolean => {
    const $id = `file:///docs/${type}`;
    const { payload } = asyncApi.components.messages[type];
    const validate = ajv.getSchema($id) ?? ajv.compile({ $id, ...payload });
    return validate(event) === true;
  };

  test('its messages are those on the channels, and real ones fit them', () => {
    for (const [at, { topic, headers }] of messages.entries()) {
      const event = events[at];
      const type = String(event?.type).split('.')[1];
      const message = asyncApi.components.messages[String(type)];
      expect(message.name).toBe(event?.type);
      expect(asyncApi.channels[topic].messages[String(type)]).toEqual({
        $ref: `#/components/messages/${type}`,
      });
      expect(fits(String(type), event)).toBe(true);
      expect(ajv.validate(asyncApi.components.schemas.Headers, headers)).toBe(true);
    }
    expect(fits('PaymentCaptured', events[0])).toBe(false);
  });

  test.each([
    ['events', 'PaymentCaptured'],
    ['state', 'PaymentState'],
    ['seals', 'LogSealed'],
  ])('docs/topics/payments.%s.v1.md shows the frozen message', (topic, type) => {
    const block = /```json\n([\s\S]*?)```/.exec(textOf(`docs/topics/payments.${topic}.v1.md`))?.[1];
    expect(JSON.parse(block ?? 'null')).toEqual(sampleOf(`${type}.v1.json`));
  });
});
