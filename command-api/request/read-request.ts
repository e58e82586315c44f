/**
 * Reads a request of the command routes whole: key, JSON, fields. The first of them that is wrong
 * is what `details` tell of (gaps §1).
 */
import type { FastifyRequest } from 'fastify';
import type { Read } from '../../shared/http/route.ts';
import type { ChangeRequest, ParsedChange } from './change-request.ts';
import { parseIdempotencyKey } from './idempotency-key.ts';
import { BODY_NOT_JSON, invalid } from './invalid.ts';
import { parseJson } from './json.ts';
import { type CreateRequest, parseCreate } from './payment-request.ts';

type Keyed = { key: string | undefined };
export type CreateContent = Keyed & { request: CreateRequest };
/** `texts` are all that the request holds, to be searched for the card number (gaps §4). */
export type ChangeContent = Keyed & { request: ChangeRequest; texts: string[] };

const NO_BODY = Buffer.alloc(0);

/** The body as JSON; undefined where there is none. */
export const readJson = ({ body }: FastifyRequest): Read<unknown> => {
  const json = parseJson(Buffer.isBuffer(body) ? body : NO_BODY);
  return json.ok ? json : invalid(BODY_NOT_JSON);
};

export const readCreate = (request: FastifyRequest): Read<CreateContent> => {
  const keyed = parseIdempotencyKey(request.raw.rawHeaders);
  if (!keyed.ok) return keyed;
  const json = readJson(request);
  if (!json.ok) return json;
  const parsed = parseCreate(json.value, keyed.key);
  return parsed.ok ? { ok: true, value: { request: parsed.request, key: keyed.key } } : parsed;
};

const withKey = (parsed: ParsedChange, key: string | undefined): Read<ChangeContent> => {
  if (!parsed.ok) return parsed;
  const texts = key === undefined ? parsed.texts : [...parsed.texts, key];
  return { ok: true, value: { request: parsed.request, texts, key } };
};

/** Makes what reads a capture or a refund, by what parses its body. */
export const readChange =
  (parse: (value: unknown) => ParsedChange) =>
  (request: FastifyRequest): Read<ChangeContent> => {
    const keyed = parseIdempotencyKey(request.raw.rawHeaders);
    if (!keyed.ok) return keyed;
    const json = readJson(request);
    return json.ok ? withKey(parse(json.value), keyed.key) : json;
  };

/** A void ignores its body, whatever it is (gaps §3). */
export const readVoid = (request: FastifyRequest): Read<ChangeContent> => {
  const keyed = parseIdempotencyKey(request.raw.rawHeaders);
  if (!keyed.ok) return keyed;
  return withKey({ ok: true, request: { amount: undefined }, texts: [] }, keyed.key);
};
