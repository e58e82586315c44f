/** What schemas are compiled to says of each value what the library says. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { z } from 'zod';
import { RequestByNumber, RequestByToken } from '../../command-api/request/schemas.ts';
import { EVENT_SCHEMAS } from '../../shared/payment/events.ts';
import { compileSchema } from '../../shared/runtime/compiled-schema.ts';
import { propertyRuns } from '../support/property-runs.ts';

type Schema = z.core.$ZodType & { shape?: Record<string, Schema>; element?: Schema };

const SOME_TEXTS = [
  '',
  'a',
  'USD',
  'usd',
  'XXQ',
  '12',
  '2030',
  '4242',
  'CARD',
  'VISA',
  '\u{1f4b3}',
];
const OTHER_TEXTS = [
  '2026-02-29T10:00:00Z',
  '2028-02-29T10:00:00Z',
  '123456789012',
  'a'.repeat(255),
];
const LONG_TEXTS = ['a'.repeat(256), '\u{1f4b3}'.repeat(128), '\u{1f4b3}'.repeat(256)];
const NUMBERS = [
  0,
  -0,
  1,
  -1,
  1.5,
  255,
  2 ** 53 - 1,
  2 ** 53,
  Number.NaN,
  Number.POSITIVE_INFINITY,
];
const ODD = [undefined, null, true, [], {}, [1], { length: 1 }, 1n, new Date(0), Symbol('odd')];
const odd = fc.constantFrom<unknown>(...ODD, ...SOME_TEXTS, ...LONG_TEXTS, ...NUMBERS);

// Made once: fast-check takes 4 ms for each, and the schemas name the same few patterns again and again.
const matching = new Map<string, fc.Arbitrary<string>>();
const textsOf = (pattern: RegExp): fc.Arbitrary<string> => {
  const made = matching.get(pattern.source) ?? fc.stringMatching(pattern);
  matching.set(pattern.source, made);
  return made;
};

const texts = (checks: readonly z.core.$ZodCheck[]): fc.Arbitrary<unknown> => {
  const patterns = checks.flatMap(({ _zod }) => {
    const { pattern } = _zod.def as { pattern?: RegExp };
    return pattern === undefined || pattern.source.includes('(?') ? [] : [pattern];
  });
  const listed = fc.constantFrom(...SOME_TEXTS, ...OTHER_TEXTS, ...LONG_TEXTS);
  const [pattern] = patterns;
  if (pattern !== undefined) return textsOf(pattern);
  return fc.oneof({ weight: 20, arbitrary: fc.constantFrom('USD', 'EUR') }, listed);
};

/** Values of which most fit; `odds` in a thousand is the chance of each part to be something else. */
const valuesOf = (schema: Schema, odds: number): fc.Arbitrary<unknown> => {
  const def = schema._zod.def as z.core.$ZodTypeDef & Record<string, unknown>;
  const inner = (of: Schema) => valuesOf(of, odds);
  const fitting = (): fc.Arbitrary<unknown> => {
    switch (def.type) {
      case 'object': {
        const fields = Object.entries(schema.shape ?? {}).map(([name, of]) => [name, inner(of)]);
        const own = fc.record(Object.fromEntries(fields));
        const more = fc.constantFrom({}, { more: 1 }, JSON.parse('{"__proto__": 1}'));
        const mixed = fc.tuple(own, more).map(([one, two]) => Object.assign(one, two));
        return fc.oneof({ weight: 1000, arbitrary: own }, { weight: odds, arbitrary: mixed });
      }
      case 'array':
        return fc.array(inner(schema.element as Schema), { maxLength: 3 });
      case 'record':
        return fc.dictionary(
          inner(def.keyType as Schema) as fc.Arbitrary<string>,
          inner(def.valueType as Schema),
          { maxKeys: 3 },
        );
      case 'optional': {
        const given = inner(def.innerType as Schema);
        return fc.oneof({ weight: 9, arbitrary: given }, fc.constant(undefined));
      }
      case 'string':
        return texts((def.checks as readonly z.core.$ZodCheck[] | undefined) ?? []);
      case 'number':
        return fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1 }) }, fc.integer());
      case 'boolean':
        return fc.boolean();
      case 'unknown':
        return fc.anything();
      default:
        return fc.constantFrom(...Object.values((def.entries ?? def.values) as object));
    }
  };
  return fc.oneof({ weight: 1000, arbitrary: fitting() }, { weight: odds, arbitrary: odd });
};

/** Fields that are absent, in another order, and from JSON, as a request has them. */
const shuffled = (value: unknown, turn: number): unknown => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).filter(
    ([, inner]) => turn % 2 === 0 || inner !== undefined,
  );
  const rotated = [...entries.slice(turn), ...entries.slice(0, turn)];
  return Object.fromEntries(rotated.map(([name, inner]) => [name, shuffled(inner, turn)]));
};

const namesIn = (value: unknown): unknown =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).map(([name, inner]) => [name, namesIn(inner)])
    : typeof value;

const loose = (schema: Schema): Schema =>
  schema.shape === undefined ? schema : (z.object(schema.shape) as Schema);

const SCHEMAS: [string, Schema][] = [
  ...Object.entries(EVENT_SCHEMAS),
  ...Object.entries(EVENT_SCHEMAS).map(([name, schema]): [string, Schema] => [
    `${name}, loose`,
    loose(schema),
  ]),
  ['RequestByNumber', RequestByNumber],
  ['RequestByToken', RequestByToken],
  ['texts by code points', z.object({ a: z.string().min(2).max(3), b: z.uuid().optional() })],
  ['any', z.object({ a: z.unknown(), b: z.array(z.int()).min(1).max(2).optional() })],
];

describe('compiled schemas', () => {
  test.each(SCHEMAS)('%s: the same values fit, and come out the same', (_name, schema) => {
    const copy = compileSchema(schema);
    const values = fc.oneof(valuesOf(schema, 2), valuesOf(schema, 100));
    fc.assert(
      fc.property(values, fc.nat(7), (value, turn) => {
        const given = shuffled(value, turn);
        const judged = z.safeParse(schema, given);
        const copied = copy(given);
        expect(copied).toStrictEqual(judged.success ? judged.data : undefined);
        expect(namesIn(copied)).toEqual(namesIn(judged.data));
      }),
      { numRuns: propertyRuns(60) },
    );
  });

  test('both fitting and unfitting values are among those that are compared', () => {
    const fitting = fc
      .sample(valuesOf(RequestByNumber, 2), { numRuns: 2_000, seed: 1 })
      .map((value) => RequestByNumber.safeParse(value).success);
    expect(new Set(fitting)).toEqual(new Set([true, false]));
  });

  test.each<[string, z.core.$ZodType]>([
    ['a change of the value', z.string().transform((text) => text.length)],
    ['a default', z.object({ a: z.string().default('a') })],
    ['a union', z.union([z.string(), z.number()])],
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
