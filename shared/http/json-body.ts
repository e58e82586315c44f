import type { FastifyRequest } from 'fastify';
import { parseText, textOf } from '../runtime/exact-json.ts';
import type { Read } from './route.ts';

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

/** The body as JSON; undefined where there is none. `withoutPoint` as in `parseText`. */
export const readJson = (
  request: FastifyRequest,
  withoutPoint: readonly string[] = [],
): Read<unknown> => {
  const json = parseText(takeText(request), withoutPoint);
  return json.ok ? json : { ok: false, details: [notJson(json.at)] };
};
