/**
 * The body of a create (interface, "Resources and their fields"): its schema, in the contract's
 * names and order, and the function that reads it (gaps §3, §4).
 */
import type { z } from 'zod';
import {
  currencyCode,
  object,
  optionalChoice,
  optionalDateTime,
  optionalFlag,
  optionalInteger,
  optionalList,
  optionalText,
  positiveInteger,
  requiredChoice,
  requiredObject,
  requiredPattern,
  requiredText,
} from '../../shared/http/fields.ts';
import {
  Address,
  Billing,
  Consumer,
  ProductItem,
  Shipping,
  Source,
} from '../../shared/http/payment-schemas.ts';
import { CARD_NUMBER, type CardInput } from '../../shared/payment/card.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';
import type { PaymentDetails } from '../../shared/payment/payment-events.ts';
import {
  holdsCardNumber,
  holdsManyDigits,
  looksLikeCard,
} from '../../shared/runtime/card-numbers.ts';
import { compileSchema } from '../../shared/runtime/compiled-schema.ts';
import { BODY_NOT_OBJECT, DETAILS_MAX, detailsOf, type Invalid, invalid } from './invalid.ts';
import { eachText, isObject, type JsonObject, requestedAmount } from './json.ts';
import { holdsNumberAlone } from './sole-number.ts';
import { spelledNumbers } from './spelled-numbers.ts';

const PRODUCT_ITEMS_MAX = 200;
const PREVIOUS_FAILURES_MAX = 20;

export const Card = requiredObject({
  number: requiredPattern(CARD_NUMBER, '12 to 19 digits'),
  holderName: requiredText(),
  cvv: optionalText(),
  expiryMonth: requiredPattern(/^(0[1-9]|1[0-2])$/, 'MM (01-12)'),
  expiryYear: requiredPattern(/^[0-9]{4}$/, 'YYYY'),
  brand: optionalText(),
}).meta({ id: 'Card' });

export const PaymentMethod = requiredObject({ type: requiredChoice(['CARD']), card: Card }).meta({
  id: 'PaymentMethod',
});

export const PreviousFailure = object({
  gateway: optionalText(),
  attemptNumber: optionalInteger(),
  responseCode: optionalText(),
  reason: optionalText(),
  timestamp: optionalDateTime(),
}).meta({ id: 'PreviousFailure' });

export const PaymentRequest = object({
  amount: positiveInteger(),
  currency: currencyCode(),
  paymentMethod: PaymentMethod,
  captureNow: optionalFlag(),
  descriptor: optionalText(),
  merchantReference: optionalText(),
  goodsType: optionalChoice(['PHYSICAL', 'DIGITAL', 'MIXED']),
  productItems: optionalList(ProductItem, PRODUCT_ITEMS_MAX),
  consumer: Consumer.optional(),
  billing: Billing.optional(),
  shipping: Shipping.optional(),
  previousFailures: optionalList(PreviousFailure, PREVIOUS_FAILURES_MAX),
  source: Source.optional(),
}).meta({ id: 'PaymentRequest' });

/** A create request with its defaults filled in and unknown fields gone. */
export type CreateRequest = {
  amount: RequestedAmount;
  currency: string;
  captureNow: boolean;
  card: CardInput;
  details: PaymentDetails;
};

/** Nothing deeper than this is ever read. */
const DEPTH_MAX = 8;

const withoutNulls = (value: unknown, depth = 0): unknown => {
  if (depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => [key, withoutNulls(inner, depth + 1)]),
  );
};

const copyOfRequest = compileSchema(PaymentRequest);

/** A `null` counts as absent; nearly no request has one, so only a body that does not fit is read again. */
const readRequest = (body: JsonObject) => {
  const data = copyOfRequest(body);
  return data === undefined
    ? PaymentRequest.safeParse(withoutNulls(body))
    : { success: true as const, data };
};

type AddressInput = z.infer<typeof Address>;

/** The older names are read as the newer ones, which win where both are given. */
const renamed = ({ line1, postalCode, ...address }: AddressInput) => ({
  ...(line1 !== undefined && { street: line1 }),
  ...(postalCode !== undefined && { zip: postalCode }),
  ...address,
});

const detailsKept = (request: Omit<z.infer<typeof PaymentRequest>, 'paymentMethod'>) => {
  const { amount: _, currency: __, captureNow: ___, merchantReference, ...kept } = request;
  const { billing, shipping } = kept;
  return {
    ...(merchantReference && { merchantReference }),
    ...kept,
    ...(billing && { billing: { address: renamed(billing.address) } }),
    ...(shipping?.address && { shipping: { ...shipping, address: renamed(shipping.address) } }),
  };
};

/** An empty CVV or brand is none. */
const cardOf = ({ cvv, brand, ...card }: z.infer<typeof Card>): CardInput => ({
  ...card,
  ...(cvv && { cvv }),
  ...(brand && { brand }),
});

const KNOWN_KEYS: ReadonlySet<string> = new Set(
  [
    PaymentRequest,
    PaymentMethod,
    Card,
    ProductItem,
    Consumer,
    Billing,
    Address,
    Shipping,
    PreviousFailure,
    Source,
  ].flatMap((schema) => Object.keys(schema.shape)),
);

const HOLDS_CARD = 'must not hold the card number';

/** A value under such a key is a number given as one, not a text that holds it. */
const SPELLED_FIELD = /(?:^|\.)(?:number|cvv)$/;

type Found = {
  /** Every field but the number's own that holds the card number, as details name it. */
  holders: ReadonlySet<string>;
  /** A text that is kept looks like the number of another card. */
  holdsOtherCard: boolean;
};

/**
 * Searches every text, every unknown key and the Idempotency-Key for the card number, and what is
 * kept also for the numbers that the body spells as one elsewhere (gaps §4).
 */
const searchTexts = (
  body: JsonObject,
  number: string,
  text: string,
  idempotencyKey: string | undefined,
): Found => {
  const isAlone = holdsNumberAlone(text, number);
  // seeded bug: spelled-number
  const spelled = isAlone ? [] : spelledNumbers(text, number);
  const holders = new Set<string>();
  let holdsOtherCard = false;
  const meet = (found: string, path: string | undefined): void => {
    // seeded bug: card-in-create
    if (path === 'paymentMethod.card.number' || !holdsManyDigits(found)) return;
    const isKept = path !== undefined && !SPELLED_FIELD.test(path);
    const held = isKept ? [number, ...spelled] : [number];
    if (held.some((one) => holdsCardNumber(found, one))) holders.add(path || 'an unknown field');
    else holdsOtherCard ||= isKept && looksLikeCard(found);
  };
  if (idempotencyKey !== undefined) meet(idempotencyKey, 'Idempotency-Key');
  if (!isAlone) eachText(body, '', KNOWN_KEYS, meet);
  return { holders, holdsOtherCard };
};

/**
 * Reads the body of a create. The key is looked at for the card number alone; its form is
 * checked by `parseIdempotencyKey`. `text` is the body as it arrived: the value has lost what stood
 * under the first of two equal keys.
 */
export const parseCreate = (
  value: unknown,
  idempotencyKey?: string,
  text = '',
): { ok: true; request: CreateRequest; holdsOtherCard: boolean } | Invalid => {
  const body = value === undefined ? {} : value;
  if (!isObject(body)) return invalid(BODY_NOT_OBJECT);
  const read = readRequest(body);
  if (!read.success) return invalid(...detailsOf(read.error.issues));
  const { paymentMethod, ...request } = read.data;
  const { number } = paymentMethod.card;
  const { holders, holdsOtherCard } = searchTexts(body, number, text, idempotencyKey);
  if (holders.size > 0) {
    return invalid(...[...holders].slice(0, DETAILS_MAX).map((field) => `${field} ${HOLDS_CARD}`));
  }
  return {
    ok: true,
    holdsOtherCard,
    request: {
      amount: requestedAmount(request.amount),
      currency: request.currency,
      captureNow: request.captureNow ?? false,
      card: cardOf(paymentMethod.card),
      details: detailsKept(request),
    },
  };
};
