/** The `Idempotency-Key` header (gaps §8). */
import { soleHeader } from '../../shared/http/headers.ts';
import { type Invalid, invalid } from './invalid.ts';

/** The `Idempotency-Key` of a request, undefined when it has none (gaps §8). */
export const parseIdempotencyKey = (
  rawHeaders: readonly string[],
): { ok: true; key: string | undefined } | Invalid => {
  const key = soleHeader(rawHeaders, 'idempotency-key');
  if (key === null) return invalid('Idempotency-Key must be given once');
  if (key === undefined || /^[\x21-\x7e]{1,255}$/.test(key)) return { ok: true, key };
  return invalid('Idempotency-Key must be 1 to 255 visible ASCII characters');
};
