/**
 * `safeParse` at a tenth of zod's cost: 13 % of the CPU of a create. An evaluated function copies a
 * fitting value; zod reads any other, so it alone says what is wrong. A test compares the two.
 */
import { z } from 'zod';

type Def = Record<string, unknown> & { type?: string; check?: string; checks?: readonly Kept[] };
type Kept = { _zod: { def: unknown } };

/** Each piece of text returns where a value does not fit, so that later text relies on it. */
type Source = {
  constants: unknown[];
  newName(): string;
};

const defOf = ({ _zod }: Kept): Def => _zod.def as Def;

const unknownTo = (what: string): never => {
  throw new TypeError(`a schema has ${what}, which compiled-schema.ts does not know`);
};

const constant = ({ constants }: Source, value: unknown): string => `$${constants.push(value) - 1}`;

const isPlainObject = (value: string): string =>
  `typeof ${value} === 'object' && ${value} !== null && !Array.isArray(${value})`;

const need = (condition: string): string => `if (!(${condition})) return;\n`;

/** Measured in code points, of which there are at least half as many as units. */
const lengthOf = (value: string | unknown[]): number =>
  typeof value === 'string' ? [...value].length : value.length;

const patternTest = (source: Source, pattern: unknown, value: string): string => {
  if (!(pattern instanceof RegExp) || pattern.global || pattern.sticky)
    return unknownTo('a pattern with a memory');
  return need(`${constant(source, pattern)}.test(${value})`);
};

const numberOf = (value: unknown): number =>
  typeof value === 'number' ? value : unknownTo('a bound that is no number');

const lengthTest = (source: Source, { check, minimum, maximum }: Def, value: string): string => {
  const bound = numberOf(check === 'min_length' ? minimum : maximum);
  const exact = `${constant(source, lengthOf)}(${value})`;
  if (check === 'max_length') return need(`${value}.length <= ${bound} || ${exact} <= ${bound}`);
  const isLong = `${value}.length >= ${2 * bound}`;
  return need(`${isLong} || (${value}.length >= ${bound} && ${exact} >= ${bound})`);
};

const sizeTest = ({ check, value: given, inclusive }: Def, value: string): string => {
  const sign = check === 'greater_than' ? '>' : '<';
  return need(`${value} ${sign}${inclusive ? '=' : ''} ${numberOf(given)}`);
};

const testOf = (source: Source, check: Def, value: string): string => {
  const { check: kind, format, pattern, fn } = check;
  if (kind === 'min_length' || kind === 'max_length') return lengthTest(source, check, value);
  if (kind === 'greater_than' || kind === 'less_than') return sizeTest(check, value);
  if (kind === 'string_format' && format === 'regex') return patternTest(source, pattern, value);
  if (kind === 'custom' && typeof fn === 'function')
    return need(`${constant(source, fn)}(${value})`);
  return unknownTo(`the check ${kind} ${format ?? ''}`);
};

const numberTest = ({ format }: Def, value: string): string => {
  if (format === 'safeint') return need(`Number.isSafeInteger(${value})`);
  return format === undefined
    ? need(`Number.isFinite(${value})`)
    : unknownTo(`the number ${format}`);
};

const stringTest = (source: Source, { format, pattern }: Def, value: string): string => {
  const isText = need(`typeof ${value} === 'string'`);
  if (format === undefined) return isText;
  return format === 'uuid' ? isText + patternTest(source, pattern, value) : unknownTo(`${format}`);
};

const choiceTest = (source: Source, values: unknown, value: string): string =>
  need(`${constant(source, new Set(Object.values(values as object)))}.has(${value})`);

const arrayCopy = (source: Source, { element }: Def, tests: string, from: string, to: string) => {
  const item = source.newName();
  const copied = source.newName();
  return `${need(`Array.isArray(${from})`)}${tests}${to} = [];
for (const ${item} of ${from}) {
let ${copied};
${copyOf(source, element as Kept, item, copied)}${to}.push(${copied});
}
`;
};

const recordCopy = (source: Source, { keyType, valueType }: Def, from: string, to: string) => {
  const name = source.newName();
  const given = source.newName();
  const [key, copied] = [source.newName(), source.newName()];
  return `${need(isPlainObject(from))}${to} = {};
for (const ${name} of Object.keys(${from}).sort()) {
const ${given} = ${from}[${name}];
let ${key}, ${copied};
${copyOf(source, keyType as Kept, name, key)}${copyOf(source, valueType as Kept, given, copied)}${to}[${key}] = ${copied};
}
`;
};

type Field = { key: string; given: string; copied: string; isOptional: boolean; text: string };

const fieldOf = (source: Source, from: string, [name, schema]: [string, Kept]): Field => {
  if (name in {}) return unknownTo(`the field ${name}`);
  const { type } = defOf(schema);
  const isOptional = type === 'optional';
  const key = JSON.stringify(name);
  const given = source.newName();
  const copied = source.newName();
  const copy = copyOf(source, schema, given, copied);
  const isAny = type === 'unknown' ? need(`${given} !== undefined || ${key} in ${from}`) : '';
  const text = `const ${given} = ${from}[${key}];
let ${copied};
${isAny}${copy}`;
  return { key, given, copied, isOptional, text };
};

const strictnessTest = (source: Source, names: readonly string[], from: string): string => {
  const name = source.newName();
  const isKnown = `${constant(source, new Set(names))}.has(${name})`;
  return `for (const ${name} in ${from}) ${need(isKnown)}`;
};

const objectText = (fields: readonly Field[], from: string, to: string): string => {
  const optional = fields.filter(({ isOptional }) => isOptional);
  const allGiven = optional.map(({ given }) => `${given} !== undefined`).join(' && ') || 'true';
  const whole = fields.map(({ key, copied }) => `${key}: ${copied}`).join(', ');
  const oneByOne = fields.map(({ key, given, copied, isOptional }) => {
    const isThere = isOptional ? `if (${given} !== undefined || ${key} in ${from}) ` : '';
    return `${isThere}${to}[${key}] = ${copied};\n`;
  });
  return `if (${allGiven}) ${to} = { ${whole} };
else {
${to} = {};
${oneByOne.join('')}}
`;
};

const objectCopy = (source: Source, { shape, catchall }: Def, from: string, to: string): string => {
  const isStrict = catchall !== undefined;
  if (isStrict && defOf(catchall as Kept).type !== 'never') return unknownTo('further fields');
  const all = Object.entries(shape as Record<string, Kept>).sort(([a], [b]) => (a < b ? -1 : 1));
  const fields = all.map((entry) => fieldOf(source, from, entry));
  let text = need(isPlainObject(from)) + fields.map((field) => field.text).join('');
  if (isStrict) text += strictnessTest(source, Object.keys(shape as object), from);
  return text + objectText(fields, from, to);
};

const copyOf = (source: Source, schema: Kept, from: string, to: string): string => {
  const def = defOf(schema);
  const { type, checks = [], coerce } = def;
  const tests = checks.map((check) => testOf(source, defOf(check), from)).join('');
  const isTested = type === 'string' || type === 'number' || type === 'array';
  if (coerce || (tests !== '' && !isTested)) return unknownTo(`a check or a change of a ${type}`);
  const asItIs = `${tests}${to} = ${from};\n`;
  switch (type) {
    case 'object':
      return objectCopy(source, def, from, to);
    case 'array':
      return arrayCopy(source, def, tests, from, to);
    case 'record':
      return recordCopy(source, def, from, to);
    case 'optional':
      return `if (${from} !== undefined) {\n${copyOf(source, def.innerType as Kept, from, to)}}\n`;
    case 'string':
      return stringTest(source, def, from) + asItIs;
    case 'number':
      return numberTest(def, from) + asItIs;
    case 'boolean':
      return need(`typeof ${from} === 'boolean'`) + asItIs;
    case 'enum':
      return choiceTest(source, def.entries, from) + asItIs;
    case 'literal':
      return choiceTest(source, def.values, from) + asItIs;
    case 'unknown':
      return asItIs;
    default:
      return unknownTo(`the kind ${type}`);
  }
};

/** Copies have their fields in canonical order. Undefined for a misfit. Throws TypeError for an unknown kind. */
export const compileSchema = <T extends z.core.$ZodType>(
  schema: T,
): ((value: unknown) => z.core.output<T> | undefined) => {
  const constants: unknown[] = [];
  let names = 0;
  const source = { constants, newName: () => `v${names++}` };
  const text = `let copied;\n${copyOf(source, schema, 'value', 'copied')}return copied;`;
  const parameters = constants.map((_, at) => `$${at}`);
  let copy: ((value: unknown) => z.core.output<T> | undefined) | undefined;
  // Evaluated at first use: a process meets few of all types of event.
  return (value) => {
    copy ??= new Function(...parameters, `return function copy(value) {\n${text}\n}`)(...constants);
    return copy?.(value);
  };
};

export type SafeParse<T> = (value: unknown) => z.ZodSafeParseResult<T>;

export const compiledParse = <T extends z.core.$ZodType>(
  schema: T,
): SafeParse<z.core.output<T>> => {
  const copy = compileSchema(schema);
  return (value) => {
    const data = copy(value);
    return data === undefined ? z.safeParse(schema, value) : { success: true, data };
  };
};
