/** What schemas are compiled to says of each value what the library says. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { RequestByNumber, RequestByToken } from '../../command-api/request/schemas.ts';
import payment from '../../examples/payment.json' with { type: 'json' };
import { EVENT_SCHEMAS, type EventType } from '../../shared/payment/events.ts';
import { compileSchema } from '../../shared/runtime/compiled-schema.ts';
import { propertyRuns } from '../support/property-runs.ts';

/** Of every type and version of event, as they are stored. */
const EVENTS = new URL('../payment/stored-events/', import.meta.url);
const examplesOf = (type: EventType): object[] =>
  readdirSync(EVENTS)
    .filter((name) => name.startsWith(`${type}.`))
    .map((name) => JSON.parse(readFileSync(new URL(name, EVENTS), 'utf8')).stored.data);

const card = { holderName: 'Ada', token: 'tok_visa', brand: 'VISA' };
const byToken = { type: 'CARD', card };
const metadata = { order: '7', empty: '' };
const SCHEMAS: [string, z.ZodType, object[]][] = [
  ...(Object.keys(EVENT_SCHEMAS) as EventType[]).flatMap((type): typeof SCHEMAS => [
    [type, EVENT_SCHEMAS[type], examplesOf(type)],
    [`${type}, loose`, z.object(EVENT_SCHEMAS[type].shape), examplesOf(type)],
  ]),
  ['RequestByNumber', RequestByNumber, [payment, { ...payment, metadata }]],
  ['RequestByToken', RequestByToken, [{ ...payment, metadata, paymentMethod: byToken }]],
  [
    'texts by code points',
    z.object({ a: z.string().min(2).max(3), b: z.uuid().optional() }),
    [{ a: '\u{1f4b3}ab', b: crypto.randomUUID() }],
  ],
  [
    'any',
    z.object({ a: z.unknown(), b: z.array(z.int()).min(1).max(2).optional() }),
    [{ a: 1, b: [1] }],
  ],
];

const GONE = Symbol('gone');
const TEXTS = ['', 'a', 'USD', 'XXQ', '12', 'CARD', '\u{1f4b3}', '2026-02-29T10:00:00Z'];
const LONG = ['a'.repeat(256), '\u{1f4b3}'.repeat(128), '\u{1f4b3}'.repeat(256)];
const NUMBERS = [0, -0, 1, 1.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY];
/** No symbol: as the length of an object it has zod itself throw. */
const ODD = [undefined, null, true, [], [1], { length: 1 }, 1n, new Date(0)];
const other = fc.constantFrom<unknown>(
  ...[GONE, GONE, JSON.parse('{"__proto__": 1}'), ...ODD, ...TEXTS, ...LONG, ...NUMBERS],
);

type Place = readonly string[];
const isHolder = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Every place of a value, itself and a field that no schema knows included. */
const placesIn = (value: unknown, at: Place = []): Place[] => {
  if (!isHolder(value)) return [at];
  const names = [...Object.keys(value), ...(Array.isArray(value) ? [] : ['more'])];
  return [at, ...names.flatMap((name) => placesIn(value[name], [...at, name]))];
};

/** A copy with `to` at a place, and its fields in another order. */
const changed = (value: unknown, [name, ...rest]: Place, to: unknown, turn: number): unknown => {
  if (name === undefined) return to;
  if (Array.isArray(value)) return value.with(Number(name), changed(value[+name], rest, to, turn));
  const inner = isHolder(value) ? value[name] : undefined;
  const fields = Object.entries({ ...Object(value), [name]: changed(inner, rest, to, turn) });
  const kept = fields.filter(([, one]) => one !== GONE);
  return Object.fromEntries([...kept.slice(turn), ...kept.slice(0, turn)]);
};

const namesIn = (value: unknown, order = (names: string[]) => names): unknown =>
  isHolder(value)
    ? order(Object.keys(value)).map((name) => [name, namesIn(value[name], order)])
    : typeof value;

/** Names that are numbers stand first in any object. */
const canonical = (names: string[]): string[] =>
  Object.keys(Object.fromEntries(names.sort().map((name) => [name, 0])));

describe('compiled schemas', () => {
  test.each(SCHEMAS)(
    '%s: the same values fit, and come out the same, in canonical order',
    (_name, schema, examples) => {
      const copy = compileSchema(schema);
      const change = fc.tuple(fc.constantFrom(...examples), fc.nat(), other, fc.nat(7), other);
      expect(examples.filter((one) => schema.safeParse(one).success)).not.toEqual([]);
      fc.assert(
        fc.property(change, fc.nat(), ([example, first, to, turn, second], next) => {
          const at = (value: unknown, n: number) =>
            placesIn(value)[n % placesIn(value).length] ?? [];
          const once = changed(example, at(example, first), to, turn);
          for (const given of [once, changed(once, at(once, next), second, 0)]) {
            const judged = z.safeParse(schema, given);
            const copied = copy(given);
            expect(copied).toStrictEqual(judged.success ? judged.data : undefined);
            expect(namesIn(copied)).toEqual(namesIn(judged.data, canonical));
          }
        }),
        { numRuns: propertyRuns(300) },
      );
    },
  );

  test.each<[string, z.core.$ZodType]>([
    ['a change of the value', z.string().transform((text) => text.length)],
    ['a default', z.object({ a: z.string().default('a') })],
    ['a number from a text', z.coerce.number()],
    ['a text that is trimmed', z.string().trim()],
    ['an email', z.object({ a: z.email() })],
    ['a multiple', z.number().multipleOf(5)],
    ['a check of a whole object', z.object({}).refine(() => true)],
    ['further fields of one kind', z.object({}).catchall(z.string())],
    ['a pattern that remembers where it was', z.string().regex(/a/g)],
    ['a field that every object has', z.object({ constructor: z.string() })],
  ])('%s is refused at the start', (_name, schema) => {
    expect(() => compileSchema(schema)).toThrow('which compiled-schema.ts does not know');
  });
});
