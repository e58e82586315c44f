/**
 * Remembers tokens that were verified, so that a signature is checked once and not per request
 * (gaps §10). Bounded; an entry never outlives its token. Keyed by digest, so that no token
 * stays in memory.
 */
import { hash } from 'node:crypto';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import type { Principal } from './tokens.ts';

const TOKENS_MAX = 10_000;

type Entry = { principal: Principal; expiresAtSeconds: number; checkAgainAtMs: number };

export type VerifiedTokens = {
  /** Who the token speaks for, when it is still good now. */
  find(digest: string, nowMs: number): Principal | undefined;
  keep(digest: string, principal: Principal, expiresAtSeconds: number, nowMs: number): void;
};

export const digestOf = (token: string): string => hash('sha256', token, 'base64');

/** `maxAgeMs` is how long a key that its issuer has withdrawn may still be believed. */
export const createVerifiedTokens = (
  maxAgeMs: number,
  tokensMax: number = TOKENS_MAX,
): VerifiedTokens => {
  const entries = createBoundedMap<Entry>(tokensMax);
  return {
    find: (digest, nowMs) => {
      const entry = entries.get(digest);
      if (entry === undefined) return undefined;
      if (Math.floor(nowMs / 1000) < entry.expiresAtSeconds && nowMs < entry.checkAgainAtMs) {
        return entry.principal;
      }
      entries.delete(digest);
      return undefined;
    },
    keep: (digest, principal, expiresAtSeconds, nowMs) => {
      entries.set(digest, { principal, expiresAtSeconds, checkAgainAtMs: nowMs + maxAgeMs });
    },
  };
};
