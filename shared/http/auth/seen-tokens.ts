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
  /**
   * The same as `find` for the Authorization header of a connection, whose last one is known by its text:
   * `digestOfHeader` is undefined for a header that holds no token.
   */
  findOn(
    connection: object,
    header: string,
    digestOfHeader: (header: string) => string | undefined,
    nowMs: number,
  ): Principal | undefined;
};

/** By what a token is known here. */
export const digestOf = (token: string): string => hash('sha256', token, 'base64');

/** `maxAgeMs` is how long a key that its issuer has withdrawn may still be believed. */
export const createVerifiedTokens = (
  maxAgeMs: number,
  tokensMax: number = TOKENS_MAX,
): VerifiedTokens => {
  const entries = createBoundedMap<Entry>(tokensMax);
  // Holds no token for longer than the connection's last request is held anyway.
  const lastOn = new WeakMap<object, { header: string; entry: Entry }>();
  const entryOf = (digest: string, nowMs: number): Entry | undefined => {
    const entry = entries.get(digest);
    if (entry === undefined || isGood(entry, nowMs)) return entry;
    entries.delete(digest);
    return undefined;
  };
  return {
    find: (digest, nowMs) => entryOf(digest, nowMs)?.principal,
    findOn: (connection, header, digestOfHeader, nowMs) => {
      const last = lastOn.get(connection);
      if (last?.header === header && isGood(last.entry, nowMs)) return last.entry.principal;
      const digest = digestOfHeader(header);
      const entry = digest === undefined ? undefined : entryOf(digest, nowMs);
      if (entry !== undefined) lastOn.set(connection, { header, entry });
      return entry?.principal;
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
