/** Who sent a request and what they may do, by the claims of a token (gaps §10). */
import type { JWTPayload } from 'jose';
import { personOf } from '../../payment/decide-resolution.ts';

/** Who sent a request. `scopes` absent: all rights of the merchant. `*` is all merchants. */
export type Principal = {
  merchantId: string;
  /** The token's subject, else its merchant, for the audit trail. */
  actor: string;
  /** Present where the token's `sub` names a person: a command of two persons needs one (gaps §16). */
  isPerson?: true;
  scopes: ReadonlySet<string> | undefined;
  /** The token's `exp`: seconds since 1970. A response that goes on ends then (docs/audit.md). */
  expiresAtSeconds?: number;
};

/** Every right that a token can name (gaps §10). */
export const SCOPES = [
  'payments:read',
  'payments:write',
  'webhooks:write',
  'audit:read',
  'ops:admin',
  'ops:resolve',
] as const;
export type Scope = (typeof SCOPES)[number];

const NAME_UNITS_MAX = 255;

/**
 * A name in the one form that counts (NFC, gaps §10), composed or decomposed as it was typed. Half of a
 * surrogate pair is none: no event could name it.
 */
const nameOf = (value: unknown): string | undefined => {
  if (typeof value !== 'string' || value === '' || value.length > NAME_UNITS_MAX) return undefined;
  if (!value.isWellFormed()) return undefined;
  const name = value.normalize('NFC');
  return name.length <= NAME_UNITS_MAX ? name : undefined;
};

/** The rights of a token; null when the claim has no form that could mean anything. */
const scopesOf = ({ scope }: JWTPayload): ReadonlySet<string> | undefined | null => {
  if (scope === undefined) return undefined;
  if (typeof scope === 'string') return new Set(scope.split(' ').filter((name) => name !== ''));
  const isList = Array.isArray(scope) && scope.every((name) => typeof name === 'string');
  return isList ? new Set<string>(scope) : null;
};

/** The first claim present names the merchant; an empty or odd one does not pass on to the next. */
export const principalOf = (
  payload: JWTPayload,
  merchantClaims: readonly string[],
): Principal | undefined => {
  const claim = merchantClaims.find((name) => Object.hasOwn(payload, name));
  const merchantId = claim === undefined ? undefined : nameOf(payload[claim]);
  const scopes = scopesOf(payload);
  if (merchantId === undefined || scopes === null) return undefined;
  const subject = nameOf(payload.sub);
  const isPerson = subject !== undefined && personOf(subject) !== '';
  return { merchantId, actor: subject ?? merchantId, scopes, ...(isPerson && { isPerson }) };
};
