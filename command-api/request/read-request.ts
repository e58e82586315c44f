/** Reads a request: key, JSON, fields. `details` are about the first that is wrong (gaps §1). */
import type { FastifyRequest } from 'fastify';
import { soleHeader } from '../../shared/http/headers.ts';
import { BODY_NOT_JSON, readJson, takeText } from '../../shared/http/json-body.ts';
import type { Read } from '../../shared/http/route.ts';
import { parseText } from '../../shared/runtime/exact-json.ts';
import type { ChangeRequest, ParsedChange } from './change-request.ts';
import { AMOUNTS, type Invalid, invalid } from './json.ts';
import { type CreateRequest, parseCreate } from './payment-request.ts';

type Keyed = { key: string | undefined };
/** `holdsOtherCard`: a text that is kept looks like the number of another card (gaps §4). */
export type CreateContent = Keyed & { request: CreateRequest; holdsOtherCard: boolean };
/** `texts` are searched for the card number (gaps §4). */
export type ChangeContent = Keyed & { request: ChangeRequest; texts: string[] };

export const parseIdempotencyKey = (
  rawHeaders: readonly string[],
): { ok: true; key: string | undefined } | Invalid => {
  const key = soleHeader(rawHeaders, 'idempotency-key');
  if (key === null) return invalid('Idempotency-Key must be given once');
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return { ok: true, key };
  return invalid('Idempotency-Key must be 1 to 255 visible ASCII characters');
};

export const readCreate = (request: FastifyRequest): Read<CreateContent> => {
  const keyed = parseIdempotencyKey(request.raw.rawHeaders);
  if (!keyed.ok) return keyed;
  const text = takeText(request);
  const json = parseText(text, AMOUNTS);
  if (!json.ok) return invalid(BODY_NOT_JSON);
  const parsed = parseCreate(json.value, keyed.key, text);
  if (!parsed.ok) return parsed;
  const { request: create, holdsOtherCard } = parsed;
  return { ok: true, value: { request: create, holdsOtherCard, key: keyed.key } };
};

const withKey = (parsed: ParsedChange, key: string | undefined): Read<ChangeContent> => {
  if (!parsed.ok) return parsed;
  const texts = key === undefined ? parsed.texts : [...parsed.texts, key];
  return { ok: true, value: { request: parsed.request, texts, key } };
};

export const readChange =
  (parse: (value: unknown) => ParsedChange) =>
  (request: FastifyRequest): Read<ChangeContent> => {
    const keyed = parseIdempotencyKey(request.raw.rawHeaders);
    if (!keyed.ok) return keyed;
    const json = readJson(request, AMOUNTS);
    return json.ok ? withKey(parse(json.value), keyed.key) : json;
  };

/** A void ignores its body, whatever it is (gaps §3). */
export const readVoid = (request: FastifyRequest): Read<ChangeContent> => {
  const keyed = parseIdempotencyKey(request.raw.rawHeaders);
  takeText(request);
  if (!keyed.ok) return keyed;
  return withKey({ ok: true, request: { amountMinor: undefined }, texts: [] }, keyed.key);
};
