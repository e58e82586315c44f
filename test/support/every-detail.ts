/** Every detail that a merchant can give, made of its form: a new field is in it by itself. */
import { z } from 'zod';
import { type PaymentDetails, paymentDetails } from '../../shared/payment/fields.ts';

/** Texts of which a request has a form of their own. */
const FORMED = new Map([
  ['country', 'FR'],
  ['email', 'Someone.Canary@Example.com'],
  ['timestamp', '2019-07-06T05:04:03Z'],
]);

type Form = {
  type?: string;
  enum?: readonly string[];
  items?: Form;
  properties?: Readonly<Record<string, Form>>;
};

/** `textAt` says what stands at a place, such as `consumer.firstName`. */
export const everyDetail = (textAt: (place: string) => string): Required<PaymentDetails> => {
  const madeOf = ({ type, enum: values, items, properties }: Form, place: string[]): unknown => {
    if (properties !== undefined)
      return Object.fromEntries(
        Object.entries(properties).map(([name, form]) => [name, madeOf(form, [...place, name])]),
      );
    if (items !== undefined) return [madeOf(items, place)];
    if (type === 'integer') return 1;
    const text = values?.[0] ?? FORMED.get(place.at(-1) ?? '') ?? textAt(place.join('.'));
    return type === 'object' ? { note: text } : text;
  };
  return madeOf(z.toJSONSchema(paymentDetails) as Form, []) as Required<PaymentDetails>;
};

/** Each text at any depth. */
export const textsIn = (value: unknown): string[] => {
  if (typeof value === 'string') return [value];
  return value instanceof Object ? Object.values(value).flatMap(textsIn) : [];
};
