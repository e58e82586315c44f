/** The kinds of field in requests, in our own words: no text of zod reaches a client (gaps §3). */
import { z } from 'zod';
import { requestForms } from '../payment/fields.ts';
import { holdsLongNumber } from '../runtime/card-numbers.ts';
import { WITH_POINT } from '../runtime/json.ts';

const DATE_TIME =
  /^(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

const isDateTime = (text: string): boolean => {
  const [, year, month, day] = DATE_TIME.exec(text) ?? [];
  if (year === undefined) return false;
  return Number(day) <= new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
};

const UTC_LENGTH = 24;

/** Whether a text compares with stored times: no leap second, and four digits of years in UTC. */
export const isMoment = (text: string): boolean => {
  if (!isDateTime(text)) return false;
  const ms = Date.parse(text);
  return !Number.isNaN(ms) && new Date(ms).toISOString().length === UTC_LENGTH;
};

/** Of a response. */
export const time = () => z.string().meta({ format: 'date-time' });

/** A schema that stands under this name in the API documents. */
export const named = <const T extends z.core.$ZodShape>(id: string, shape: T) =>
  z.object(shape).meta({ id });

export const REQUIRED = 'is required';
const NOT_TEXT = 'must be a string';
const NOT_POSITIVE = 'must be a positive integer';
const NOT_MINOR = `${NOT_POSITIVE} of minor units: 2500 is 25 dollars`;
export const TEXT_UNITS_MAX = 255;
const TOO_LONG = `must be at most ${TEXT_UNITS_MAX} characters`;

type Texts = readonly string[];
type Issue = { readonly input?: unknown };

const isAbsent = (input: unknown): boolean => input === undefined || input === null;

export const requiredOr =
  (wording: string) =>
  ({ input }: Issue): string =>
    isAbsent(input) ? REQUIRED : wording;

const textOf = (isOptional: boolean) =>
  isOptional
    ? z.string({ error: NOT_TEXT })
    : z.string({ error: requiredOr(NOT_TEXT) }).min(1, REQUIRED);

/** Counts UTF-16 units: the library's own `max` counts code points. */
const short = (text: z.ZodString) =>
  text
    // So no text that is searched for cards or parsed is as long as a whole body.
    .refine((value) => value.length <= TEXT_UNITS_MAX, { error: TOO_LONG, abort: true })
    .meta({ maxLength: TEXT_UNITS_MAX });

export const requiredText = () => short(textOf(false));

/** A person's note, which an event keeps for ever. */
export const noteText = (description: string) =>
  requiredText()
    .refine((text) => text.trim() !== '', REQUIRED)
    .refine((text) => !holdsLongNumber(text), {
      error: 'must not hold a run of 12 digits or more: no card number may be kept',
    })
    .refine((text) => !text.includes('@'), 'must not hold an @: no e-mail address may be kept')
    .meta({ description });

export const shortText = () => short(textOf(true));

export const optionalText = () => shortText().optional();

const notOneOf = (input: unknown, values: Texts) =>
  typeof input === 'string' ? `must be one of ${values.join(', ')}` : NOT_TEXT;

export const requiredChoice = <const T extends Texts>(values: T) =>
  z.enum(values, {
    error: ({ input }: Issue) =>
      isAbsent(input) || input === '' ? REQUIRED : notOneOf(input, values),
  });

export const choice = <const T extends Texts>(values: T) =>
  z.enum(values, { error: ({ input }: Issue) => notOneOf(input, values) });

/** The API document shows a number, although an address holds a text. */
export const asNumber = (minimum: number, maximum?: number) => ({
  type: 'integer' as const,
  minimum,
  ...(maximum !== undefined && { maximum }),
  maxLength: undefined,
});

/** Of an address. A mistyped filter must not look like an empty answer, or a whole one. */
export const parameters = <const T extends z.core.$ZodLooseShape>(shape: T) =>
  z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? 'a parameter of another name is not known here' : undefined,
  });

export const NoParameters = parameters({});

/** A parameter of an address; given twice, it is an array. */
export const parameterText = () => z.string({ error: 'must be given once' });

/** How many entries a page has at most. */
export const limitParameter = (max: number, whereLeftOut: number) => {
  const form = `must be an integer from 1 to ${max}`;
  return parameterText()
    .regex(/^[0-9]{1,4}$/, form)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= max, form)
    .meta(asNumber(1, max))
    .default(whereLeftOut);
};

export const shortParameter = () => short(parameterText().min(1, 'must not be empty'));

/** In the form of a name that a token's merchant has (gaps §10). */
export const merchantParameter = () => shortParameter().normalize('NFC');

const fromOne = (number: z.ZodNumber) =>
  number
    .refine((value) => Number.isInteger(value) && value >= 1, NOT_POSITIVE)
    .meta({ type: 'integer', minimum: 1 });

const notPositive = ({ input }: Issue): string => (input === WITH_POINT ? NOT_MINOR : NOT_POSITIVE);

/** The rules reject one above 2^53-1 (gaps §3). */
export const positiveInteger = () =>
  fromOne(z.number({ error: (issue) => (isAbsent(issue.input) ? REQUIRED : notPositive(issue)) }));

export const optionalPositiveInteger = (meaning: string) =>
  fromOne(z.number({ error: notPositive }))
    .optional()
    .describe(meaning);

const { MAX_SAFE_INTEGER: COUNT_MAX } = Number;

/** For numbers that are kept and that no later rule checks. */
const countableInteger = () =>
  positiveInteger()
    .refine((value) => value <= COUNT_MAX, `must be at most ${COUNT_MAX}`)
    .meta({ type: 'integer', minimum: 1, maximum: COUNT_MAX });

const NOT_OBJECT = 'must be an object';

export const object = <T extends z.core.$ZodLooseShape>(shape: T) =>
  z.object(shape, { error: NOT_OBJECT });

export const requiredObject = <T extends z.core.$ZodLooseShape>(shape: T) =>
  z.object(shape, { error: requiredOr(NOT_OBJECT) });

/** Two fields of one schema, as the address of two, are one in the API document. */
const COMPONENTS = new WeakMap<z.ZodType, z.ZodType>();

const component = (stored: z.ZodObject, id: string, make = requiredObject): z.ZodType => {
  const made = COMPONENTS.get(stored) ?? make(requestFields(stored.shape)).meta({ id });
  COMPONENTS.set(stored, made);
  return made;
};

const requestForm = (stored: z.ZodType, field: string, isOptional: boolean): z.ZodType => {
  const id = field.charAt(0).toUpperCase() + field.slice(1);
  if (stored instanceof z.ZodObject) return component(stored, id);
  if (stored instanceof z.ZodArray) {
    const { maxItems = 0 } = z.toJSONSchema(stored);
    const item = component(stored.element as z.ZodObject, id.replace(/s$/, ''), object);
    const list = z.array(item, { error: 'must be an array' });
    // A null counts as absent (gaps §3).
    return list
      .max(maxItems, `must have at most ${maxItems} items`)
      .meta({ type: ['array', 'null'] });
  }
  if (stored instanceof z.ZodEnum)
    return (isOptional ? choice : requiredChoice)(stored.options as Texts);
  if (stored instanceof z.ZodBoolean) return z.boolean({ error: 'must be a boolean' });
  if (stored instanceof z.ZodNumber)
    return isOptional ? z.int({ error: 'must be an integer' }) : countableInteger();
  return short(textOf(isOptional));
};

const requestField = (stored: z.ZodType, field: string): z.ZodType => {
  const isOptional = stored instanceof z.ZodOptional;
  const inner = (isOptional ? stored.unwrap() : stored) as z.ZodType;
  const rule = requestForms.get(stored) ?? requestForms.get(inner) ?? { form: inner };
  const made = () => {
    if ('format' in rule) return dateTime();
    if ('form' in rule) return requestForm(rule.form, field, isOptional);
    return textOf(isOptional).regex(rule.pattern, `must be ${rule.words}`);
  };
  const form = isOptional ? made().optional() : made();
  const meta = stored.meta() ?? inner.meta();
  return meta === undefined ? form : form.meta(meta);
};

/** Stored fields, as a request gives them: in our own words. An object is a component of its field's name. */
export const requestFields = <S extends z.core.$ZodShape>(stored: S): S =>
  Object.fromEntries(
    Object.entries(stored).map(([field, form]) => [field, requestField(form as z.ZodType, field)]),
  ) as unknown as S;

const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf('currency'));
const NO_CURRENCY = 'must be a valid ISO 4217 code';
const NOT_CAPITAL = 'must be three capital letters, as in USD';
const WITH_SMALL = /^[A-Za-z]*[a-z][A-Za-z]*$/;

/** Any listed currency: a rule says which of them the merchant may use. */
export const currencyCode = () =>
  z
    .string({ error: requiredOr(NO_CURRENCY) })
    .min(1, REQUIRED)
    .refine((value) => CURRENCIES.has(value), {
      error: ({ input }) => (WITH_SMALL.test(String(input)) ? NOT_CAPITAL : NO_CURRENCY),
    })
    .meta({ pattern: '^[A-Z]{3}$' });

const NOT_DATE_TIME = 'must be a date-time, as in 2026-01-31T08:00:00Z';

const dateTime = () => shortText().refine(isDateTime, NOT_DATE_TIME).meta({ format: 'date-time' });

/** A date-time with any offset, read in the form of stored ones: UTC with milliseconds. */
export const moment = () =>
  dateTime()
    .optional()
    .refine((value) => value === undefined || isMoment(value), { error: NOT_DATE_TIME })
    .transform((value) => (value === undefined ? undefined : new Date(value).toISOString()));

/** For `details` (gaps §3), such as `productItems[0].name`. */
export const fieldName = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');
