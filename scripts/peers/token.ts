/** The merchant of a bearer token (HS256), with a cache, as every peer checks it. */
import { createHash } from 'node:crypto';
import { jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';

const secret = new TextEncoder().encode(process.env.JWT_SECRET);
const key = await crypto.subtle.importKey('raw', secret, { name: 'HMAC', hash: 'SHA-256' }, false, [
  'verify',
]);
const verified = new LRUCache<string, { merchantId: string; expiresAt: number }>({ max: 10_000 });

/** Undefined for a header without a valid token. */
export const merchantOf = async (
  authorization: string | undefined,
): Promise<string | undefined> => {
  if (!authorization?.startsWith('Bearer ')) return undefined;
  const token = authorization.slice('Bearer '.length);
  const digest = createHash('sha256').update(token).digest('base64');
  const known = verified.get(digest);
  if (known !== undefined && known.expiresAt > Date.now()) return known.merchantId;
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['HS256'],
      requiredClaims: ['exp'],
    });
    const merchantId = String(payload.merchant_id ?? payload.sub);
    verified.set(digest, { merchantId, expiresAt: Number(payload.exp) * 1000 });
    return merchantId;
  } catch {
    return undefined;
  }
};
