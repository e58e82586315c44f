/** The sender of a request and their rights, by the claims of a token (gaps §10). */
import type { JWTPayload } from 'jose';
import { personOf } from '../../payment/decide.ts';

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
