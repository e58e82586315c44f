/** `--set path=value`: fields of a create request by their path, checked before the first request. */
import { z } from 'zod';
import { PaymentRequest } from '../../command-api/request/schemas.ts';
import { TEST_CARDS } from '../../providers/simulator/test-cards.ts';
import { orElse } from '../../shared/runtime/error-text.ts';
import { CommandFailed } from '../output.ts';

type Json = Record<string, unknown>;

const wrong = (message: string): CommandFailed => new CommandFailed(message, 2);

const withoutOptional = (schema: z.core.$ZodType): z.core.$ZodType =>
  schema instanceof z.ZodOptional ? withoutOptional(schema.unwrap()) : schema;

const stepsOf = (path: string): string[] => path.replace(/\[(\d+)\]/g, '.$1').split('.');

/** A union has the fields of all its forms. */
const fieldOf = (schema: z.core.$ZodType, name: string): z.core.$ZodType | undefined => {
  if (schema instanceof z.ZodUnion)
    return schema.options.map((form) => fieldOf(form, name)).find((field) => field !== undefined);
  if (schema instanceof z.ZodObject && Object.hasOwn(schema.shape, name)) return schema.shape[name];
  return schema instanceof z.ZodArray && /^\d{1,3}$/.test(name) ? schema.element : undefined;
};

const schemaAt = (path: string): z.core.$ZodType | undefined => {
  let schema: z.core.$ZodType | undefined = PaymentRequest;
  for (const step of stepsOf(path)) schema = schema && fieldOf(withoutOptional(schema), step);
  return schema && withoutOptional(schema);
};

const put = (target: Json, [step = '', ...rest]: string[], value: unknown): void => {
  if (rest.length === 0) target[step] = value;
  else {
    const inner = target[step] ?? (/^\d+$/.test(rest[0] ?? '') ? [] : {});
    if (typeof inner !== 'object')
      throw wrong(`--set: ${step} already has a value, so it cannot hold fields`);
    target[step] = inner;
    put(inner as Json, rest, value);
  }
};

const KNOWN_CARDS: ReadonlySet<unknown> = new Set(TEST_CARDS.map(({ number }) => number));

const checkCard = (body: Json): void => {
  const number: unknown = Object(Object(body.paymentMethod).card).number;
  if (number === undefined || KNOWN_CARDS.has(number)) return;
  throw wrong('--set: only test cards are allowed here; list them with: payments cards');
};

/** A copy of a create request with the overrides in it. Throws CommandFailed with exit code 2. */
export const withOverrides = (body: Json, overrides: readonly string[]): Json => {
  const changed = structuredClone(body);
  for (const override of overrides) {
    const [, path = '', text = ''] = /^([^=]+)=(.*)$/s.exec(override) ?? [];
    if (path === '')
      throw wrong('--set: the override must be path=value, such as consumer.email=a@b.example');
    const schema = schemaAt(path);
    if (schema === undefined)
      throw wrong(`--set: a payment request has no field ${path}; see docs/interface.md`);
    // A text field takes the text; any other field takes JSON, so that 5 is a number.
    const isText = schema instanceof z.ZodString || schema instanceof z.ZodEnum;
    put(changed, stepsOf(path), isText ? text : orElse(text, () => JSON.parse(text)));
  }
  checkCard(changed);
  return changed;
};
