/**
 * The requests of the contract (interface, "Resources and their fields"): their schemas, in the
 * contract's names and order, and the functions that read them (gaps §3, §4).
 */
import type { z } from 'zod';
import type { CardInput } from '../payment/card.ts';
import type { RequestedAmount } from '../payment/commands.ts';
import type { PaymentDetails } from '../payment/payment-events.ts';
import { eachText, holdsCardNumber, textsOf } from './card-text.ts';
import {
  countableInteger,
  currencyCode,
  object,
  optionalChoice,
  optionalCountry,
  optionalDateTime,
  optionalFlag,
  optionalInteger,
  optionalList,
  optionalPositiveInteger,
  optionalText,
  positiveInteger,
  REQUIRED,
  requiredChoice,
  requiredObject,
  requiredPattern,
  requiredText,
} from './fields.ts';
import { soleHeader } from './headers.ts';

const PRODUCT_ITEMS_MAX = 200;
const PREVIOUS_FAILURES_MAX = 20;
/** A longer list of faults helps nobody. */
const DETAILS_MAX = 100;

/** `line1` and `postalCode` are the older names of `street` and `zip`. */
export const Address = requiredObject({
  street: optionalText(),
  line1: optionalText().meta({ deprecated: true, writeOnly: true }),
  city: optionalText(),
  country: optionalCountry(),
  state: optionalText(),
  zip: optionalText(),
  postalCode: optionalText().meta({ deprecated: true, writeOnly: true }),
}).meta({ id: 'Address' });

export const Card = requiredObject({
  number: requiredPattern(/^[0-9]{12,19}$/, '12 to 19 digits'),
  holderName: requiredText(),
  cvv: optionalText(),
  expiryMonth: requiredPattern(/^(0[1-9]|1[0-2])$/, 'MM (01-12)'),
  expiryYear: requiredPattern(/^[0-9]{4}$/, 'YYYY'),
  brand: optionalText(),
}).meta({ id: 'Card' });

export const PaymentMethod = requiredObject({ type: requiredChoice(['CARD']), card: Card }).meta({
  id: 'PaymentMethod',
});

export const ProductItem = object({
  id: requiredText(),
  name: requiredText(),
  quantity: countableInteger(),
  unitPrice: countableInteger(),
  goodsType: requiredChoice(['PHYSICAL', 'DIGITAL']),
}).meta({ id: 'ProductItem' });

export const Consumer = object({
  firstName: requiredText(),
  lastName: optionalText(),
  email: requiredText(),
  phone: optionalText(),
  ip: optionalText(),
}).meta({ id: 'Consumer' });

export const Billing = object({ address: Address }).meta({ id: 'Billing' });

export const Shipping = object({
  address: Address.optional(),
  firstName: optionalText(),
  lastName: optionalText(),
}).meta({ id: 'Shipping' });

export const PreviousFailure = object({
  gateway: optionalText(),
  attemptNumber: optionalInteger(),
  responseCode: optionalText(),
  reason: optionalText(),
  timestamp: optionalDateTime(),
}).meta({ id: 'PreviousFailure' });

export const Source = object({
  storeId: requiredText(),
  initiatedBy: optionalChoice(['CONSUMER', 'MERCHANT']),
  externalMerchantId: optionalText(),
}).meta({ id: 'Source' });

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

const changeFields = { amount: optionalPositiveInteger(), reason: optionalText() };

export const CaptureRequest = object({
  captureAmount: optionalPositiveInteger(),
  ...changeFields,
}).meta({ id: 'CaptureRequest' });

export const RefundRequest = object({
  refundAmount: optionalPositiveInteger(),
  ...changeFields,
}).meta({ id: 'RefundRequest' });

/** A create request with its defaults filled in and unknown fields gone. */
export type CreateRequest = {
  amount: RequestedAmount;
  currency: string;
  captureNow: boolean;
  card: CardInput;
  details: PaymentDetails;
};

/** A capture or refund request; an omitted amount is undefined. */
export type ChangeRequest = { amount: RequestedAmount | undefined; reason?: string | undefined };

export type Invalid = { ok: false; details: string[] };

/** What `details` say of a body that is no JSON at all. */
export const BODY_NOT_JSON = 'the body must be valid JSON';
const BODY_NOT_OBJECT = 'the body must be a JSON object';

const invalid = (...details: string[]): Invalid => ({ ok: false, details });

type JsonObject = Record<string, unknown>;

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The required leaves of the objects that are required themselves (gaps §3). */
const CARD_LEAVES = ['number', 'holderName', 'expiryMonth', 'expiryYear'].map(
  (name) => `paymentMethod.card.${name}`,
);
const LEAVES: Readonly<Record<string, readonly string[]>> = {
  paymentMethod: ['paymentMethod.type', ...CARD_LEAVES],
  'paymentMethod.card': CARD_LEAVES,
};

const pathText = (path: readonly PropertyKey[]): string =>
  path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    return text === '' ? String(step) : `${text}.${String(step)}`;
  }, '');

/** One detail per field, in the contract's order. A card is only required where the type is CARD. */
const detailsOf = (issues: readonly z.core.$ZodIssue[]): string[] => {
  const wordings = new Map<string, string>();
  for (const { path, message } of issues) {
    const field = pathText(path);
    const typeIsWrong = (wordings.get('paymentMethod.type') ?? REQUIRED) !== REQUIRED;
    if (field === 'paymentMethod.card' && message === REQUIRED && typeIsWrong) continue;
    const named = message === REQUIRED ? (LEAVES[field] ?? [field]) : [field];
    for (const name of named) if (!wordings.has(name)) wordings.set(name, message);
  }
  return [...wordings].slice(0, DETAILS_MAX).map(([field, wording]) => `${field} ${wording}`);
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

/** A `null` counts as absent; nearly no request has one, so only a refused one is looked at again. */
const readObject = <T>(schema: z.ZodType<T>, body: JsonObject) => {
  const result = schema.safeParse(body);
  return result.success ? result : schema.safeParse(withoutNulls(body));
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

const requested = (amount: number): RequestedAmount =>
  amount > Number.MAX_SAFE_INTEGER ? 'too large' : amount;

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

/** Names every field but the number's own that holds the card number (gaps §4). */
const cardNumberDetails = (
  body: JsonObject,
  number: string,
  idempotencyKey: string | undefined,
): string[] => {
  const fields = new Set<string>();
  if (idempotencyKey !== undefined && holdsCardNumber(idempotencyKey, number)) {
    fields.add('Idempotency-Key');
  }
  eachText(body, '', KNOWN_KEYS, (text, path) => {
    if (path === 'paymentMethod.card.number' || !holdsCardNumber(text, number)) return;
    fields.add(path === undefined || path === '' ? 'an unknown field' : path);
  });
  return [...fields].slice(0, DETAILS_MAX).map((field) => `${field} ${HOLDS_CARD}`);
};

/**
 * Reads the body of a create. The key is looked at for the card number alone; its form is
 * `parseIdempotencyKey`'s to judge.
 */
export const parseCreate = (
  value: unknown,
  idempotencyKey?: string,
): { ok: true; request: CreateRequest } | Invalid => {
  const body = value === undefined ? {} : value;
  if (!isObject(body)) return invalid(BODY_NOT_OBJECT);
  const read = readObject(PaymentRequest, body);
  if (!read.success) return invalid(...detailsOf(read.error.issues));
  const { paymentMethod, ...request } = read.data;
  const leaks = cardNumberDetails(body, paymentMethod.card.number, idempotencyKey);
  if (leaks.length > 0) return invalid(...leaks);
  return {
    ok: true,
    request: {
      amount: requested(request.amount),
      currency: request.currency,
      captureNow: request.captureNow ?? false,
      card: cardOf(paymentMethod.card),
      details: detailsKept(request),
    },
  };
};

type AmountName = 'captureAmount' | 'refundAmount';
export type ParsedChange =
  | { ok: true; request: ChangeRequest /** For `textsHoldCard`. */; texts: string[] }
  | Invalid;

type ChangeFields = { amount?: number | undefined; reason?: string | undefined } & Partial<
  Record<AmountName, number | undefined>
>;

/** What is wrong with the fields taken together; each alone is well formed. */
const togetherDetails = (name: AmountName, body: JsonObject, fields: ChangeFields): string[] => {
  const { [name]: named, amount } = fields;
  if (named !== undefined && amount !== undefined && named !== amount) {
    return [`amount must be equal to ${name}`];
  }
  // A mistyped name must never move the full sum.
  const mayBeMistyped = Object.keys(body).some((key) => key !== 'reason');
  return named === undefined && amount === undefined && mayBeMistyped
    ? [`${name} is required beside other fields`]
    : [];
};

const parseChange = (
  schema: z.ZodType<ChangeFields>,
  name: AmountName,
  value: unknown,
): ParsedChange => {
  if (value === undefined) return { ok: true, request: { amount: undefined }, texts: [] };
  if (!isObject(value)) return invalid(BODY_NOT_OBJECT);
  // Beside the reason no null is absent: an amount that is there as null is refused.
  const { reason: given, ...rest } = value;
  const read = schema.safeParse(given === null ? rest : value);
  if (!read.success) return invalid(...detailsOf(read.error.issues));
  const details = togetherDetails(name, value, read.data);
  if (details.length > 0) return invalid(...details);
  const { [name]: named, amount = named, reason } = read.data;
  return {
    ok: true,
    request: {
      amount: amount === undefined ? undefined : requested(amount),
      ...(reason && { reason }),
    },
    texts: textsOf(value),
  };
};

/** Reads the body of a capture (gaps §3); undefined is no body. */
export const parseCapture = (value: unknown): ParsedChange =>
  parseChange(CaptureRequest, 'captureAmount', value);

/** Reads the body of a refund (gaps §3); undefined is no body. */
export const parseRefund = (value: unknown): ParsedChange =>
  parseChange(RefundRequest, 'refundAmount', value);

/** What `details` say of a paymentId that is not well formed. */
export const PAYMENT_ID_FORM = 'paymentId must be 1 to 32 characters of A-Z, a-z, 0-9, _ and -';

/** The paymentId of a path when it is well formed (gaps §2), else undefined. */
export const parsePaymentId = (raw: string): string | undefined =>
  /^[A-Za-z0-9_-]{1,32}$/.test(raw) ? raw : undefined;

/** The `Idempotency-Key` of a request, undefined when it has none (gaps §8). */
export const parseIdempotencyKey = (
  rawHeaders: readonly string[],
): { ok: true; key: string | undefined } | Invalid => {
  const key = soleHeader(rawHeaders, 'idempotency-key');
  if (key === null) return invalid('Idempotency-Key must be given once');
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return { ok: true, key };
  return invalid('Idempotency-Key must be 1 to 255 visible ASCII characters');
};
