/**
 * Stored forms live for ever: one frozen file for every event type and version ever written, read
 * by today's code. A file is never edited; a new version adds a file, and a hop in upcast.ts.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { decode, encode, isReadable } from '../../shared/event-store/codec.ts';
import type { Expected, NewEvent, StoredForm } from '../../shared/event-store/port.ts';
import {
  EVENT_SCHEMAS,
  EVENT_VERSIONS,
  type EventType,
  type PaymentEvent,
  READ_SCHEMAS,
} from '../../shared/payment/events.ts';
import { CannotUpcast, upcast, upcastOver, withNamesOfToday } from '../../shared/payment/upcast.ts';
import { anyPayment, authorized, created, newEvent } from '../support/payment-events.ts';
import { propertyRuns } from '../support/property-runs.ts';

type Stored = { type: string; stream: string; revision: number; data: object };
type Frozen = { hash: string; stored: Stored };

const FOLDER = new URL('./stored-events/', import.meta.url);
const frozenForm = (name: string): Frozen =>
  JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as Frozen;

const rowOf = (stored: Stored): StoredForm => ({
  position: '1',
  stream: stored.stream,
  revision: stored.revision,
  hash: 'a'.repeat(64),
  text: String(canonicalize(stored)),
});
const changed = (change: object): StoredForm =>
  rowOf({ ...frozenForm('PaymentAuthorized.v1.json').stored, ...change });
const dataOf = (event: ReturnType<typeof decode>): unknown => {
  if (!isReadable(event)) throw new Error(event.unreadable);
  return event.event.data;
};

type Form = { file: string; type: EventType; version: number; variant: string };
const types = Object.keys(EVENT_SCHEMAS) as EventType[];
/** A variant has optional fields that were added to a version later, or is as it was written at first. */
const forms = readdirSync(FOLDER).map((file): Form => {
  const [, type, version, variant = ''] = /^(\w+)\.v(\d+)(\.[\w-]+)?\.json$/.exec(file) ?? [];
  return { file, type: type as EventType, version: Number(version), variant };
});
const isPlain = ({ variant }: Form): boolean => variant === '';

describe('gaps §6: every stored form is read by the code of today', () => {
  test('there is one frozen file for every type and version, and no variant is deleted', () => {
    const files = types.flatMap((type) =>
      Array.from({ length: EVENT_VERSIONS[type] }, (_, n) => `${type}.v${n + 1}.json`),
    );
    const [plain, variants] = [forms.filter(isPlain), forms.filter((form) => !isPlain(form))];
    expect(plain.map(({ file }) => file).sort()).toEqual(files.sort());
    expect(variants.length).toBeGreaterThanOrEqual(21);
  });

  test.each(forms)('$file is read, and fits the schema of today', (form) => {
    const { stored } = frozenForm(form.file);
    const event = decode(rowOf(stored));
    expect(event).toMatchObject({ stream: stored.stream, revision: stored.revision });
    expect(stored).toMatchObject({ type: form.type, schemaVersion: form.version });
    expect(READ_SCHEMAS[form.type].safeParse(dataOf(event)).success).toBe(true);
  });

  test.each(forms)('the hash of $file is that of its canonical JSON', (form) => {
    const { stored, hash } = frozenForm(form.file);
    const text = String(canonicalize(stored));
    expect(createHash('sha256').update(text).digest('hex')).toBe(hash);
  });

  const isPresent = ({ type, version, variant }: Form): boolean =>
    version === EVENT_VERSIONS[type] && variant !== '.old-names';
  test.each(forms.filter(isPresent))(
    '$file is still the very form in which its type is stored',
    (form: Form) => {
      const { stored, hash } = frozenForm(form.file);
      const event = decode(rowOf(stored));
      if (!isReadable(event)) throw new Error(event.unreadable);
      const { revision, previousHash } = event;
      const expected: Expected =
        revision === 0 ? 'none' : { revision: revision - 1, hash: previousHash };
      const [encoded] = encode(event.stream, expected, [event]);
      expect(encoded?.text).toBe(canonicalize(stored));
      expect(encoded?.recorded.hash).toBe(hash);
    },
  );
});

const OUTCOME =
  /^Payment(Authorized|Captured|Voided|Refunded|Failed|(Capture|Void|Refund)Declined)$/;

describe('version 1 under its first names is read under those of today', () => {
  test.each(['PaymentAuthorized', 'PaymentRefundDeclined'])(
    'what was resolved by hand is not taken for the word of the provider: %s',
    (type) => {
      const atFirst = frozenForm(`${type}.v1.old-names.json`).stored;
      const today = frozenForm(`${type}.v1.by-hand.json`).stored;
      expect(dataOf(decode(rowOf(atFirst)))).toEqual(dataOf(decode(rowOf(today))));
    },
  );

  test.each(types)('whatever outcome it is, and no other event: %s', (type) => {
    const old = frozenForm('PaymentRefundDeclined.v1.old-names.json').stored.data;
    const today = frozenForm('PaymentRefundDeclined.v1.by-hand.json').stored.data;
    expect(withNamesOfToday(type, 1, old)).toStrictEqual(OUTCOME.test(type) ? today : old);
    for (const same of [today, null, 'text', undefined])
      expect(withNamesOfToday(type, 1, same)).toBe(same);
    expect(withNamesOfToday(type, 2, old)).toBe(old);
  });

  test('the outcome of a declined payment is what was stored as its cause', () => {
    const event = decode(rowOf(frozenForm('PaymentFailed.v1.old-names.json').stored));
    expect(dataOf(event)).toMatchObject({ outcome: 'DECLINED' });
  });
});

describe('gaps §6: the hash covers canonical JSON (RFC 8785)', () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed);
    if (value === null || typeof value !== 'object') return value;
    const entries = Object.entries(value).reverse();
    return Object.fromEntries(entries.map(([name, field]) => [name, reversed(field)]));
  };

  test('the stored text is what the library makes of it, whatever order the fields came in', () => {
    fc.assert(
      fc.property(anyPayment('pay_1'), fc.boolean(), (events, turned) => {
        const batch = events.map((event) => newEvent(event));
        const given = turned ? (reversed(batch) as NewEvent[]) : batch;
        for (const { text, recorded } of encode('payment-pay_1', 'none', given)) {
          expect(text).toBe(canonicalize(JSON.parse(text)));
          expect(JSON.parse(text).data).toEqual(recorded.event.data);
        }
      }),
      { numRuns: propertyRuns(40) },
    );
  });

  test('a text that spells out an escape is stored, half a surrogate pair is refused', () => {
    const named = (merchantReference: string) => [
      newEvent(created({ details: { merchantReference } })),
    ];
    const [spelled] = encode('payment-pay_1', 'none', named('\\ud800'));
    expect(JSON.parse(spelled?.text ?? '').data.details.merchantReference).toBe('\\ud800');
    expect(() => encode('payment-pay_1', 'none', named('\ud800'))).toThrow('surrogate');
  });

  test('a batch is linked: each event names the hash of the one before it', () => {
    const [first, second] = encode('payment-pay_1', 'none', [
      newEvent(created()),
      newEvent(authorized()),
    ]);
    expect(first?.recorded.previousHash).toBe('0'.repeat(64));
    expect(second?.recorded.previousHash).toBe(first?.recorded.hash);
    expect(second?.recorded.revision).toBe(1);
  });
});

describe('encoding is strict', () => {
  test.each<[string, PaymentEvent]>([
    ['an unknown field', { ...authorized(), data: { ...authorized().data, pan: 'x' } } as never],
    ['a missing field', { type: 'PaymentAuthorized', data: { amount: 1 } } as never],
    ['an amount of zero', authorized({ amount: 0 })],
    ['an unknown type', { type: 'toString', data: {} } as never],
  ])('%s is refused', (_, event) => {
    expect(() => encode('payment-pay_1', 'none', [newEvent(event)])).toThrow(TypeError);
  });

  test('gaps §4: a refusal names the place and never the value', () => {
    const [event] = [authorized({ currency: '4242424242424242' })];
    expect(() => encode('payment-pay_1', 'none', [newEvent(event)])).toThrow(
      /^PaymentAuthorized does not fit its schema at currency$/,
    );
  });
});

describe('decoding is loose, and total', () => {
  const { data } = frozenForm('PaymentAuthorized.v1.json').stored;

  test('a field that a later version added is left out, at any depth', () => {
    const { stored } = frozenForm('PaymentCreated.v2.json');
    const { card, details, ...rest } = stored.data as Record<string, object>;
    const later = { ...rest, card: { ...card, token: 't' }, details: { ...details, gift: true } };
    const wider = { ...stored, region: 'eu', data: { ...later, channel: 'web' } };
    const row = rowOf(wider);
    expect(dataOf(decode(row))).toEqual(stored.data);
  });

  test.each<[string, object, RegExp]>([
    ['a missing field', { data: { ...data, amount: undefined } }, /schema at amount/],
    ['a missing context', { context: undefined }, /schema at context/],
    ['an unknown type', { type: 'PaymentTeleported' }, /unknown type PaymentTeleported/],
    ['an odd type', { type: '<script>' }, /unknown type \(odd name\)/],
    ['a newer version', { schemaVersion: 99 }, /version 99 .* newer than 1/],
    ['a version of zero', { schemaVersion: 0 }, /schema at schemaVersion/],
  ])('%s makes the event unreadable, its place and hash stay known', (_, change, reason) => {
    const row = changed(change);
    expect(decode(row)).toEqual({
      stream: row.stream,
      revision: row.revision,
      position: '1',
      hash: row.hash,
      unreadable: expect.stringMatching(reason),
    });
  });

  test('an event stored in the place of another is unreadable', () => {
    const row = changed({});
    const unreadable = expect.stringMatching(/another place/);
    expect(decode({ ...row, revision: row.revision + 1 })).toMatchObject({ unreadable });
    expect(decode({ ...row, stream: 'payment-other' })).toMatchObject({ unreadable });
  });

  test('no text makes it throw, and its answer never repeats the text', () => {
    const text = fc.oneof(fc.string(), fc.json(), fc.constant('{"data":"4242424242424242"'));
    fc.assert(
      fc.property(text, (garbage) => {
        const event = decode({ ...changed({}), text: garbage });
        expect(event).toMatchObject({ unreadable: expect.any(String) });
        expect(JSON.stringify(event)).not.toContain('4242424242424242');
      }),
    );
  });
});

describe('upcasting', () => {
  const versions = { ...EVENT_VERSIONS, PaymentAuthorized: 3 };
  const hops = {
    PaymentAuthorized: {
      1: (data: unknown) => ({ ...Object(data), currency: 'EUR' }),
      2: (data: unknown) => ({ ...Object(data), amount: Object(data).amount * 100 }),
    },
  };
  const old = changed({ data: { operationId: 'op_1', amount: 25 } });

  test('an old form goes through each hop once, in order, and is checked as today', () => {
    const event = decode(old, undefined, upcastOver(hops, versions));
    expect(dataOf(event)).toEqual({ operationId: 'op_1', amount: 2500, currency: 'EUR' });
    const second = {
      ...changed({ schemaVersion: 2, data: { operationId: 'op_1', amount: 25, currency: 'USD' } }),
    };
    expect(dataOf(decode(second, undefined, upcastOver(hops, versions)))).toMatchObject({
      amount: 2500,
      currency: 'USD',
    });
  });

  test('version 1 had texts of a person in the clear, which are read apart', () => {
    const read = upcast('PaymentCreated', 1, { card: { holderName: 'Jane' }, details: {} });
    expect(read).toHaveProperty('personal.clear.holderName', 'Jane');
    expect(upcast('PaymentVoidRequested', 1, { reason: 'r' })).toEqual({ reason: { clear: 'r' } });
    expect(upcast('PaymentVoidRequested', 1, {})).toStrictEqual({});
  });

  test('what was stored stays as it was: version and hash are those of the stored form', () => {
    const event = decode(old, undefined, upcastOver(hops, versions));
    expect(event).toMatchObject({ schemaVersion: 1, hash: old.hash });
  });

  test('without its hop the old form is unreadable', () => {
    const event = decode(old, undefined, upcastOver({}, versions));
    expect(event).toMatchObject({ unreadable: 'no hop from version 1 of PaymentAuthorized' });
    expect(() => upcastOver({}, versions)('PaymentAuthorized', 1, {})).toThrow(CannotUpcast);
  });

  test('a hop that fails makes the event unreadable, without a word of its data', () => {
    const failing = {
      PaymentAuthorized: {
        ...hops.PaymentAuthorized,
        1: () => {
          throw new Error('4242');
        },
      },
    };
    const event = decode(old, undefined, upcastOver(failing, versions));
    expect(event).toMatchObject({ unreadable: 'is not JSON, or its upcast failed' });
  });
});
