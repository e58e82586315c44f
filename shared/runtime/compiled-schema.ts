/**
 * Plain functions made from schemas, for what is checked with every request: a fitting value is copied
 * at a quarter of the library's cost and a fifth of its garbage (ADR-0160). They know what our schemas
 * are made of and nothing else; test/runtime/compiled-schema.test.ts compares them with the library.
 */
import type { z } from 'zod';

/** No schema gives it, while `undefined` is what an optional field may be. */
const MISFIT = Symbol('misfit');
type Copy = (value: unknown) => unknown;
type Test = (value: never) => boolean;

/** What a schema or a check is made of, as the library keeps it. */
type Def = Record<string, unknown> & { type?: string; check?: string; checks?: readonly Kept[] };
type Kept = { _zod: { def: unknown } };

const defOf = ({ _zod }: Kept): Def => _zod.def as Def;

const unknownTo = (what: string): never => {
  throw new TypeError(`a schema has ${what}, which compiled-schema.ts does not know`);
};

/** Texts are measured in code points; a text has at least half as many as it has units. */
const lengthOf = (value: string | unknown[]): number =>
  typeof value === 'string' ? [...value].length : value.length;

const patternTest = (pattern: unknown): Test => {
  if (!(pattern instanceof RegExp) || pattern.global || pattern.sticky)
    return unknownTo('a pattern with a memory');
  return (value: string) => pattern.test(value);
};

const numberOf = (value: unknown): number =>
  typeof value === 'number' ? value : unknownTo('a bound that is no number');

const lengthTest = ({ check, minimum, maximum }: Def): Test => {
  const bound = numberOf(check === 'min_length' ? minimum : maximum);
  return check === 'min_length'
    ? (value: string) =>
        value.length >= bound && (value.length >= 2 * bound || lengthOf(value) >= bound)
    : (value: string) => value.length <= bound || lengthOf(value) <= bound;
};

const sizeTest = ({ check, value: given, inclusive }: Def): Test => {
  const bound = numberOf(given);
  if (check === 'greater_than')
    return inclusive ? (value) => value >= bound : (value) => value > bound;
  return inclusive ? (value) => value <= bound : (value) => value < bound;
};

const testOf = (check: Def): Test => {
  const { check: kind, format, pattern, fn } = check;
  if (kind === 'min_length' || kind === 'max_length') return lengthTest(check);
  if (kind === 'greater_than' || kind === 'less_than') return sizeTest(check);
  if (kind === 'string_format' && format === 'regex') return patternTest(pattern);
  if (kind === 'custom' && typeof fn === 'function') return (value) => Boolean(fn(value));
  return unknownTo(`the check ${kind} ${format ?? ''}`);
};

/** A value that is kept as it is where `fits` and every check of the schema hold. */
const asItIs = (fits: (value: unknown) => boolean, tests: readonly Test[]): Copy => {
  const [first, second, ...more] = tests;
  return (value) => {
    if (!fits(value)) return MISFIT;
    if (first !== undefined && !first(value as never)) return MISFIT;
    if (second !== undefined && !second(value as never)) return MISFIT;
    for (const test of more) if (!test(value as never)) return MISFIT;
    return value;
  };
};

const numberCopy = ({ format }: Def, tests: readonly Test[]): Copy => {
  if (format === 'safeint') return asItIs(Number.isSafeInteger, tests);
  return format === undefined ? asItIs(Number.isFinite, tests) : unknownTo(`the number ${format}`);
};

const stringCopy = ({ format, pattern }: Def, tests: readonly Test[]): Copy => {
  const isText = (value: unknown) => typeof value === 'string';
  if (format === undefined) return asItIs(isText, tests);
  return format === 'uuid'
    ? asItIs(isText, [patternTest(pattern), ...tests])
    : unknownTo(`${format}`);
};

const arrayCopy = ({ element }: Def, tests: readonly Test[]): Copy => {
  const copyItem = copyOf(element as Kept);
  return (value) => {
    if (!Array.isArray(value) || !tests.every((test) => test(value as never))) return MISFIT;
    const items: unknown[] = [];
    for (const item of value) {
      const copied = copyItem(item);
      if (copied === MISFIT) return MISFIT;
      items.push(copied);
    }
    return items;
  };
};

type Field = { name: string; isOptional: boolean; takesUndefined: boolean; copy: Copy };

const fieldOf = ([name, schema]: [string, Kept]): Field => {
  if (name in {}) return unknownTo(`the field ${name}`);
  const { type } = defOf(schema);
  const isOptional = type === 'optional';
  return {
    name,
    isOptional,
    takesUndefined: isOptional || type === 'unknown',
    copy: copyOf(schema),
  };
};

const objectCopy = ({ shape, catchall }: Def): Copy => {
  const fields = Object.entries(shape as Record<string, Kept>).map(fieldOf);
  const names: ReadonlySet<string> = new Set(fields.map(({ name }) => name));
  const isStrict = catchall !== undefined;
  if (isStrict && defOf(catchall as Kept).type !== 'never') return unknownTo('further fields');
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return MISFIT;
    const given = value as Record<string, unknown>;
    const copied: Record<string, unknown> = {};
    for (const { name, isOptional, takesUndefined, copy } of fields) {
      const inner = given[name];
      if (inner === undefined) {
        if (!takesUndefined) return MISFIT;
        if (name in given) copied[name] = undefined;
        else if (!isOptional) return MISFIT;
        continue;
      }
      const kept = copy(inner);
      if (kept === MISFIT) return MISFIT;
      copied[name] = kept;
    }
    // seeded bug: compiled-strictness
    if (isStrict) for (const name in given) if (!names.has(name)) return MISFIT;
    return copied;
  };
};

const isAmong = (values: unknown): ((value: unknown) => boolean) => {
  const known = new Set(Object.values(values as object));
  return (value) => known.has(value);
};

const copyOf = (schema: Kept): Copy => {
  const def = defOf(schema);
  const { type, checks = [], coerce } = def;
  const tests = checks.map((check) => testOf(defOf(check)));
  const isTested = type === 'string' || type === 'number' || type === 'array';
  if (coerce || (tests.length > 0 && !isTested))
    return unknownTo(`a check or a change of a ${type}`);
  switch (type) {
    case 'object':
      return objectCopy(def);
    case 'array':
      return arrayCopy(def, tests);
    case 'optional': {
      const copy = copyOf(def.innerType as Kept);
      return (value) => (value === undefined ? undefined : copy(value));
    }
    case 'string':
      return stringCopy(def, tests);
    case 'number':
      return numberCopy(def, tests);
    case 'boolean':
      return asItIs((value) => typeof value === 'boolean', tests);
    case 'enum':
      return asItIs(isAmong(def.entries), tests);
    case 'literal':
      return asItIs(isAmong(def.values), tests);
    case 'unknown':
      return (value) => value;
    default:
      return unknownTo(`the kind ${type}`);
  }
};

/**
 * The function that copies a value that fits the schema, with the fields in the schema's order, as the
 * library's parse does; `undefined` for a value that does not fit: ask the library what is wrong with
 * it. Throws TypeError for a schema of which it does not know every part.
 */
export const compileSchema = <T extends z.core.$ZodType>(
  schema: T,
): ((value: unknown) => z.core.output<T> | undefined) => {
  const copy = copyOf(schema);
  return (value) => {
    const copied = copy(value);
    return copied === MISFIT ? undefined : (copied as z.core.output<T>);
  };
};
