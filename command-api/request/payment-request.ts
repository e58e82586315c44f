/** Reads a create: key, JSON and fields; `details` are about the first that is wrong (gaps §1, §3, §4). */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { shortText } from '../../shared/http/fields.ts';
import {
  BODY_NOT_OBJECT,
  type Invalid,
  invalid,
  isObject,
  type JsonObject,
  notJson,
  parseIdempotencyKey,
  type Read,
  takeText,
  withoutNulls,
} from '../../shared/http/request.ts';
import type { CardInput, TokenInput } from '../../shared/payment/card.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';
import {
  METADATA_NAME,
  type PaymentDetails,
  type RequestAddress,
} from '../../shared/payment/fields.ts';
import { minor } from '../../shared/payment/transitions.ts';
import { longRuns } from '../../shared/runtime/card-numbers.ts';
import { compiledParse, type SafeParse } from '../../shared/runtime/compiled-schema.ts';
import { parseText } from '../../shared/runtime/json.ts';
import { writtenUrl } from '../../webhooks/endpoints/addresses.ts';
import { type Arrived, type LongText, searchTexts } from './card-texts.ts';
import { AMOUNTS, detailsOf, givenTwice, plainName } from './json.ts';
import {
  type Card,
  type CardByToken,
  OF_A_NUMBER,
  PaymentRequest,
  RequestByNumber,
  RequestByToken,
} from './schemas.ts';

export type CreateRequest = {
  amount: RequestedAmount;
  currency: string;
  captureNow: boolean;
  card: CardInput | TokenInput;
  authentication?: { returnUrl: string } | undefined;
  details: PaymentDetails;
  /** Beside a token, to be searched once its card is known (gaps §14). */
  longTexts?: readonly LongText[] | undefined;
};

/** `holdsOtherCard`: a text that is kept looks like the number of another card (gaps §4). */
type CreateContent = { request: CreateRequest; holdsOtherCard: boolean };
type ParsedCreate = ({ ok: true } & CreateContent) | Invalid;

export const readCreate = (
  request: FastifyRequest,
): Read<CreateContent & { key: string | undefined }> => {
  const keyed = parseIdempotencyKey(request.raw.rawHeaders);
  const text = takeText(request);
  if (!keyed.ok) return keyed;
  const json = parseText(text, AMOUNTS);
  if (!json.ok) return invalid(notJson(json.at));
  const parsed = parseCreate(json.value, keyed.key, text, json.repeated);
  if (!parsed.ok) return parsed;
  const { request: create, holdsOtherCard } = parsed;
  return { ok: true, value: { request: create, holdsOtherCard, key: keyed.key } };
};

/** Nearly no request has a `null`: only a body that does not fit is read without them. */
const readBy = <T>(parse: SafeParse<T>, body: JsonObject) => {
  const read = parse(body);
  return read.success ? read : parse(withoutNulls(body));
};

const parseRequestByNumber = compiledParse(RequestByNumber);
const parseRequestByToken = compiledParse(RequestByToken);

const cardIn = ({ paymentMethod }: JsonObject): JsonObject | undefined => {
  const card = isObject(paymentMethod) ? paymentMethod.card : undefined;
  return isObject(card) ? card : undefined;
};

const isGiven = (card: JsonObject, field: string): boolean =>
  card[field] !== undefined && card[field] !== null;

const BOTH = 'paymentMethod.card must hold either number or token';
const NO_SHOPPER = 'paymentMethod.card.authentication needs a shopper who is there';
const BOTH_WAYS = 'paymentMethod.card must hold either threeDSecure or authentication';

/** The older names are read as the newer ones, which win where both are given. */
const renamed = ({ line1, postalCode, ...address }: RequestAddress) => ({
  ...address,
  street: address.street ?? line1,
  zip: address.zip ?? postalCode,
});

const detailsKept = (details: PaymentDetails) => ({
  ...details,
  merchantReference: details.merchantReference || undefined,
  billing: details.billing && { address: renamed(details.billing.address) },
  shipping: details.shipping && {
    ...details.shipping,
    address: details.shipping.address && renamed(details.shipping.address),
  },
});

/** An empty CVV or brand counts as absent. */
const cardOf = (given: z.infer<typeof Card | typeof CardByToken>): CardInput | TokenInput => {
  const { authentication: _, ...card } = given;
  const brand = card.brand || undefined;
  return 'token' in card ? { ...card, brand } : { ...card, brand, cvv: card.cvv || undefined };
};

const namesIn = (schema: unknown): string[] => {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {} } = schema as { properties?: object };
  return [...Object.keys(properties), ...Object.values(schema).flatMap(namesIn)];
};

/** Of the fields of the contract, at any depth. */
const KNOWN_KEYS: ReadonlySet<string> = new Set(
  namesIn(z.toJSONSchema(PaymentRequest, { io: 'input' })),
);

const FIELDS = Object.keys(PaymentRequest.shape);
const FIELD_BY_PLAIN_NAME = new Map([
  ...FIELDS.map((field): [string, string] => [plainName(field), field]),
  ['capture', 'captureNow'],
  ['autocapture', 'captureNow'],
]);

const LETTERS_MIN = 8;
const LONG_FIELDS = FIELDS.map(plainName).filter(({ length }) => length >= LETTERS_MIN);
const ONE_LETTER = /^\p{L}?$/u;

/** It misses, adds or changes one letter. Both in plain spelling, and not equal. */
const isOneLetterOff = (name: string, field: string): boolean => {
  const added = name.length - field.length;
  if (Math.abs(added) > 1) return false;
  let at = 0;
  while (name[at] === field[at]) at += 1;
  const [nameAt, fieldAt] = [at + Number(added >= 0), at + Number(added <= 0)];
  return name.slice(nameAt) === field.slice(fieldAt) && ONE_LETTER.test(name.slice(at, nameAt));
};

const fieldMeantBy = (unknown: string): string | undefined => {
  const name = plainName(unknown);
  const isField = FIELD_BY_PLAIN_NAME.has(name);
  const field = isField ? name : LONG_FIELDS.find((long) => isOneLetterOff(name, long));
  return FIELD_BY_PLAIN_NAME.get(field ?? '');
};

/** Ignored as unknown, `capturenow` would make an authorization of a sale (gaps §3). */
const misspelledBy = (unknown: readonly string[]): string[] => {
  const meant = new Set(unknown.map(fieldMeantBy));
  return FIELDS.filter((field) => meant.has(field));
};

const isAbout = (detail: string, field: string): boolean =>
  detail.startsWith(field) && /^[ .[]/.test(detail.slice(field.length));

/** `text`: the body as it arrived, with both of two equal keys. `repeated`: those of the outermost object. */
export const parseCreate = (
  value: unknown,
  idempotencyKey?: string,
  text = '',
  repeated: readonly string[] = [],
): ParsedCreate => {
  const body = value === undefined ? {} : value;
  if (!isObject(body)) return invalid(BODY_NOT_OBJECT);
  const parsed = parseBody({ body, text, idempotencyKey });
  const unknown = Object.keys(body).filter((name) => !FIELDS.includes(name));
  if (unknown.length === 0 && repeated.length === 0) return parsed;
  const misspelled = misspelledBy(unknown);
  const twice = givenTwice(body, repeated).filter((field) => !misspelled.includes(field));
  const fields = [...misspelled, ...twice];
  if (fields.length === 0) return parsed;
  const others = parsed.ok ? [] : parsed.details;
  return invalid(
    ...misspelled.map((field) => `${field} is misspelled`),
    ...twice.map((field) => `${field} stands twice`),
    ...others.filter((detail) => !fields.some((field) => isAbout(detail, field))),
  );
};

/** Above 2^53-1 it is for the rules to reject (gaps §3). */
export const requestedAmount = (amount: number): RequestedAmount =>
  amount > Number.MAX_SAFE_INTEGER ? 'too large' : minor(amount);

const parseBody = (arrived: Arrived): ParsedCreate => {
  const { body } = arrived;
  const given = cardIn(body);
  const isByToken = given !== undefined && isGiven(given, 'token');
  if (isByToken && OF_A_NUMBER.some((field) => isGiven(given, field))) return invalid(BOTH);
  if (given && isGiven(given, 'threeDSecure') && isGiven(given, 'authentication'))
    return invalid(BOTH_WAYS);
  const read = isByToken ? readBy(parseRequestByToken, body) : readBy(parseRequestByNumber, body);
  const misfits = read.success ? [] : detailsOf(read.error.issues);
  const faults = [...misfits, ...metadataFaults(body.metadata)];
  if (!read.success || faults.length > 0) return invalid(...faults);
  const { amount, currency, captureNow = false, paymentMethod, ...rest } = read.data;
  const { card } = paymentMethod;
  if (card.authentication && rest.source?.initiatedBy === 'MERCHANT') return invalid(NO_SHOPPER);
  const found = searchTexts(arrived, card, KNOWN_KEYS);
  if (found.details.length > 0) return invalid(...found.details);
  const request = {
    amount: requestedAmount(amount),
    currency,
    captureNow,
    card: cardOf(card),
    authentication: card.authentication && { returnUrl: writtenUrl(card.authentication.returnUrl) },
    details: { ...detailsKept(rest), ...metadataKept(body.metadata) },
    longTexts: 'token' in card ? found.longTexts : undefined,
  };
  return { ok: true, holdsOtherCard: found.holdsOtherCard, request };
};

const NAMES_MAX = 20;

/** Matches any e-mail address. */
const NAMES_A_PERSON = /\S@\S/;
const metadataValue = shortText().refine(
  (text) => !NAMES_A_PERSON.test(text),
  'must not hold personal data',
);

/** A details line names the name, so no name may hold a card number. */
const isAllowed = (name: string): boolean =>
  METADATA_NAME.test(name) && longRuns(name).length === 0;

const faultOf = ([name, value]: [string, unknown]): string[] => {
  const { error } = metadataValue.safeParse(value);
  return error === undefined ? [] : [`metadata.${name} ${error.issues[0]?.message}`];
};

const metadataFaults = (metadata: unknown): string[] => {
  if (metadata === undefined || metadata === null) return [];
  if (!isObject(metadata)) return ['metadata must be an object'];
  const entries = Object.entries(metadata);
  if (entries.length > NAMES_MAX) return [`metadata must have at most ${NAMES_MAX} names`];
  if (!entries.every(([name]) => isAllowed(name)))
    return ['metadata has a name that is not allowed'];
  return entries.flatMap(faultOf);
};

/** Without faults. In the order of stored events, so that bodies are equal to the byte. */
const metadataKept = (metadata: unknown): { metadata?: Record<string, string> } => {
  const entries = Object.entries(metadata ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.length === 0 ? {} : { metadata: Object.fromEntries(entries) };
};
