/** Tokens that were checked before. They are kept by digest, so that no token stays in memory. */
import { hash } from 'node:crypto';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import type { Principal } from './principal.ts';

export type Authentication =
  | { ok: true; principal: Principal }
  | { ok: false; details: string[] }
  /** The issuer's keys are out of reach, so the token could not be checked. */
  | { ok: 'unknown' };

const TOKENS_MAX = 10_000;
const REJECTED_MS = 10_000;

export const digestOf = (token: string): string => hash('sha256', token, 'base64');

const createTokenCache = <T extends object>(tokensMax: number) => {
  const entries = createBoundedMap<{ known: T; untilMs: number }>(tokensMax);
  return {
    find: (digest: string, nowMs: number): T | undefined => {
      const entry = entries.get(digest);
      return entry !== undefined && nowMs < entry.untilMs ? entry.known : undefined;
    },
    keep: (digest: string, known: T, untilMs: number): void => {
      entries.set(digest, { known, untilMs });
    },
  };
};

/** Verified tokens. `maxAgeMs` is how long a key that its issuer has withdrawn is still believed. */
export const createVerifiedTokens = (maxAgeMs: number, tokensMax: number = TOKENS_MAX) => {
  const { find, keep } = createTokenCache<Principal>(tokensMax);
  return {
    find,
    keep: (digest: string, principal: Principal, expiresAtSeconds: number, nowMs: number): void =>
      keep(digest, principal, Math.min(expiresAtSeconds * 1000, nowMs + maxAgeMs)),
  };
};

/** Rejected tokens, for a short time, because an issuer may put a new key under an old name. */
export const createRejectedTokens = () => {
  const { find, keep } = createTokenCache<Authentication>(TOKENS_MAX);
  return {
    find,
    keep: (digest: string, rejection: Authentication, nowMs: number): void =>
      keep(digest, rejection, nowMs + REJECTED_MS),
  };
};
