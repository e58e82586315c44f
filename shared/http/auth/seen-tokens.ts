/** Tokens that were checked before: those that were verified, and those that were rejected. */
import { hash } from 'node:crypto';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import type { Principal } from './principal.ts';

/** What checking a request's Authorization header came to. */
export type Authentication =
  | { ok: true; principal: Principal }
  | { ok: false; details: string[] }
  /** The issuer's keys are out of reach, so the token could not be checked. */
  | { ok: 'unknown' };

const TOKENS_MAX = 10_000;

type Entry = { principal: Principal; expiresAtSeconds: number; checkAgainAtMs: number };

const isGood = ({ expiresAtSeconds, checkAgainAtMs }: Entry, nowMs: number): boolean =>
  nowMs < expiresAtSeconds * 1000 && nowMs < checkAgainAtMs;

/**
 * Tokens that were verified, so that a signature is checked once and not per request. Bounded; an
 * entry never outlives its token. Keyed by digest, so that no token stays in memory.
 */
export type VerifiedTokens = {
  /** Who the token speaks for, when it is still good now. */
  find(digest: string, nowMs: number): Principal | undefined;
  keep(digest: string, principal: Principal, expiresAtSeconds: number, nowMs: number): void;
};

/** By what a token is known here. */
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
      if (entry === undefined || isGood(entry, nowMs)) return entry?.principal;
      entries.delete(digest);
      return undefined;
    },
    keep: (digest, principal, expiresAtSeconds, nowMs) => {
      entries.set(digest, { principal, expiresAtSeconds, checkAgainAtMs: nowMs + maxAgeMs });
    },
  };
};

const REJECTED_MAX = 10_000;
const REJECTED_MS = 10_000;

/**
 * Tokens that were rejected, so that one that is sent again and again costs no signature check. For a
 * short time, because an issuer may put a new key under an old name.
 */
export const createRejectedTokens = () => {
  const entries = createBoundedMap<{ rejection: Authentication; untilMs: number }>(REJECTED_MAX);
  return {
    find: (digest: string, nowMs: number): Authentication | undefined => {
      const entry = entries.get(digest);
      return entry !== undefined && nowMs < entry.untilMs ? entry.rejection : undefined;
    },
    keep: (digest: string, rejection: Authentication, nowMs: number): void => {
      entries.set(digest, { rejection, untilMs: nowMs + REJECTED_MS });
    },
  };
};
