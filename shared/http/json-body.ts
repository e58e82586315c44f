import type { FastifyRequest } from 'fastify';
import { parseText, textOf } from '../runtime/exact-json.ts';
import type { Read } from './route.ts';

export const BODY_NOT_JSON = 'the body must be valid JSON';

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
  return json.ok ? json : { ok: false, details: [BODY_NOT_JSON] };
};
