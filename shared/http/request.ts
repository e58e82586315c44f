/** What a request says: its body, its headers, and who sends it with which rights. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { JWTPayload } from 'jose';
import type { EventContext } from '../event-store/port.ts';
import { personOf } from '../payment/decide.ts';
import { parseText, textOf } from '../runtime/json.ts';
import { traceparentOf } from '../runtime/tracing.ts';

/** A client mends the first ones first. */
const DETAILS_MAX = 100;

export type Invalid = { ok: false; details: string[] };

export const BODY_NOT_OBJECT = 'the body must be a JSON object';

export const invalid = (...details: string[]): Invalid => ({
  ok: false,
  details: details.slice(0, DETAILS_MAX),
});

export type Read<T> = { ok: true; value: T } | Invalid;

export type JsonObject = Record<string, unknown>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const READ_DEPTH_MAX = 8;

/** A `null` in an object counts as absent (gaps §3). */
export const withoutNulls = (value: unknown, depth = 0): unknown => {
  if (depth > READ_DEPTH_MAX) return value;
  if (Array.isArray(value)) return value.map((item) => withoutNulls(item, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null)
      .map(([key, inner]) => [key, withoutNulls(inner, depth + 1)]),
  );
};

const NOT_JSON = 'the body must be valid JSON';
export const notJson = (at: number | undefined): string =>
  at === undefined ? NOT_JSON : `${NOT_JSON}; it breaks at character ${at + 1}`;

const NO_BODY = Buffer.alloc(0);

/** The text of a body. Its bytes, which may hold a card number, are overwritten at once (gaps §4). */
export const takeText = ({ body }: FastifyRequest): string | undefined => {
  const bytes = Buffer.isBuffer(body) ? body : NO_BODY;
  const text = textOf(bytes);
  bytes.fill(0);
  return text;
};

/** The body as JSON; undefined where there is none. */
export const readJsonBody = (request: FastifyRequest): Read<unknown> => {
  const json = parseText(takeText(request));
  return json.ok ? json : invalid(notJson(json.at));
};

/** Undefined when absent, null when repeated: Node's own `headers` silently keep the first of two. */
export const soleHeader = (rawHeaders: readonly string[], name: string) => {
  let value: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const header = rawHeaders[at];
    if (header?.length !== name.length || header.toLowerCase() !== name) continue;
    if (value !== undefined) return null;
    value = rawHeaders[at + 1] ?? '';
  }
  return value;
};

/** The sender of a request and their rights, by the claims of a token (gaps §10). */
export type Principal = {
  /** `*`: all merchants. */
  merchantId: string;
  /** The token's subject, else its merchant, for the audit trail. */
  actor: string;
  /** The token's `sub` names a person: a command of two persons needs one (gaps §16). */
  isPerson?: true;
  /** Undefined: all rights of the merchant. */
  scopes: ReadonlySet<string> | undefined;
  /** The token's `exp`, since 1970. A stream ends then (docs/audit.md). */
  expiresAtSeconds?: number;
};

export const SCOPES = [
  'payments:read',
  'payments:write',
  'webhooks:write',
  'audit:read',
  'audit:personal',
  'ops:admin',
  'ops:resolve',
  'ops:erase',
] as const;
export type Scope = (typeof SCOPES)[number];

const NAME_UNITS_MAX = 255;

/** A name in NFC (gaps §10). Half a surrogate pair is none: no event could name it. */
const nameOf = (value: unknown): string | undefined => {
  if (typeof value !== 'string' || value === '' || value.length > NAME_UNITS_MAX) return undefined;
  if (!value.isWellFormed()) return undefined;
  const name = value.normalize('NFC');
  return name.length <= NAME_UNITS_MAX ? name : undefined;
};

/** Null for a claim of another form. */
const scopesOf = ({ scope }: JWTPayload): ReadonlySet<string> | undefined | null => {
  if (scope === undefined) return undefined;
  if (typeof scope === 'string') return new Set(scope.split(' ').filter((name) => name !== ''));
  const isList = Array.isArray(scope) && scope.every((name) => typeof name === 'string');
  return isList ? new Set<string>(scope) : null;
};

/** The merchant of a token: the first claim present names it; an empty or odd one does not pass on to the next. */
export const principalOf = (payload: JWTPayload, merchantClaims: readonly string[]) => {
  const claim = merchantClaims.find((name) => Object.hasOwn(payload, name));
  const merchantId = claim === undefined ? undefined : nameOf(payload[claim]);
  const scopes = scopesOf(payload);
  if (merchantId === undefined || scopes === null) return undefined;
  const subject = nameOf(payload.sub);
  const isPerson = subject !== undefined && personOf(subject) !== '';
  return { merchantId, actor: subject ?? merchantId, scopes, ...(isPerson && { isPerson }) };
};

/** Undefined where the actor may see every merchant's events. */
export const onlyOf = ({ merchantId }: Pick<Principal, 'merchantId'>): string | undefined =>
  merchantId === '*' ? undefined : merchantId;

/** It names the request's trace (ADR-0233). */
export type Sender = Pick<EventContext, 'actor' | 'requestId' | 'traceparent'> & {
  merchantId: string;
};

export const senderOf = (
  { merchantId, actor }: Principal,
  { request }: Pick<FastifyReply, 'request'>,
): Sender => {
  const sender = { merchantId, actor, requestId: request.id };
  const { span } = request;
  return span === undefined ? sender : { ...sender, traceparent: traceparentOf(span.place) };
};

export const contextOf = ({ merchantId: _, ...sender }: Sender): EventContext => {
  const { requestId } = sender;
  return { ...sender, correlationId: requestId, causationId: requestId };
};

export const parseIdempotencyKey = (
  rawHeaders: readonly string[],
): { ok: true; key: string | undefined } | Invalid => {
  const key = soleHeader(rawHeaders, 'idempotency-key');
  if (key === null) return invalid('Idempotency-Key must be given once');
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return { ok: true, key };
  return invalid('Idempotency-Key must be 1 to 255 visible ASCII characters');
};
