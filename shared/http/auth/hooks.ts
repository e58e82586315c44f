/** The checks of a route before its body is read (gaps §1): token (401), scope (403), rate (429). */
import { isIP, type Socket } from 'node:net';
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import type { Config } from '../../runtime/config.ts';
import type { Log } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { RETRY_LATER, reject } from '../errors.ts';
import type { Principal, Scope } from '../request.ts';
import {
  type Authentication,
  type Authenticator,
  createAuthenticator,
  isOfMerchants,
  mayUse,
} from './tokens.ts';

type AuthOptions = {
  authenticator: Pick<Authenticator, 'authenticate'>;
  rateOf(merchantId: string): Rate;
  /** Per address, for requests without a valid token alone (gaps §11). */
  unauthenticatedRate: Rate;
};

/** The `onRequest` hook of a route by its scope; behind it `request.principal` is set. */
export type AuthHooks = (scope: Scope) => onRequestHookHandler;

/** Rejects where there is no place for so many seconds. */
const isWithinRate = (reply: FastifyReply, seconds: number | undefined): boolean => {
  if (seconds === undefined) return true;
  const headers = { 'retry-after': String(seconds) };
  reject(reply, 'RATE_LIMITED', ['too many requests; try again later'], headers);
  return false;
};

const UNCHECKED = ["the token issuer's keys cannot be loaded"];

export const rejectScope = (reply: FastifyReply, { merchantId }: Principal, scope: Scope): void => {
  const why =
    merchantId === '*' && isOfMerchants(scope)
      ? 'the token is for all merchants; make one for a single merchant: payments token --merchant <id>'
      : `the scope ${scope} is required`;
  reject(reply, 'FORBIDDEN', [why]);
};

/** The hooks of one server; all its routes share the rates. */
export const createAuthHooks = (options: AuthOptions): AuthHooks => {
  const { authenticator, rateOf, unauthenticatedRate } = options;
  const merchants = createRateLimiter();
  const addresses = createRateLimiter();
  const addressOf = ({ raw }: FastifyRequest): string => peerOf(raw.socket);
  const draw = ({ merchantId }: Principal) => merchants.take(merchantId, rateOf(merchantId));

  const rejectToken = (
    reply: FastifyReply,
    { details, reason }: Extract<Authentication, { ok: false }>,
  ): void => {
    reply.request.tokenFault = reason;
    const seconds = addresses.take(addressOf(reply.request), unauthenticatedRate);
    if (isWithinRate(reply, seconds))
      reject(reply, 'UNAUTHORIZED', details, { 'www-authenticate': 'Bearer' });
  };

  return (scope) => {
    const proceed = (reply: FastifyReply, known: Authentication, done: () => void): void => {
      if (known.ok === false) rejectToken(reply, known);
      else if (known.ok === 'unknown') reject(reply, 'SERVICE_UNAVAILABLE', UNCHECKED, RETRY_LATER);
      else {
        const { principal } = known;
        reply.request.principal = principal;
        if (!mayUse(principal, scope)) rejectScope(reply, principal, scope);
        else if (isWithinRate(reply, draw(principal))) done();
      }
    };
    return (request, reply, done) => {
      // An unknown key is worth no fetch for an address that has sent too many bad tokens.
      const mayLoad = () => addresses.hasOne(addressOf(request), unauthenticatedRate);
      const { rawHeaders, socket } = request.raw;
      const known = authenticator.authenticate(rawHeaders, mayLoad, socket);
      if (!(known instanceof Promise)) proceed(reply, known, done);
      else known.then((checked) => proceed(reply, checked, done), done);
    };
  };
};

export const openAuthHooks = async (
  config: Config,
  { log, metrics }: { log: Pick<Log, 'warn'>; metrics: Metrics },
): Promise<AuthHooks> => {
  const authenticator = await createAuthenticator(config.tokens, (error) =>
    log.warn({ err: error }, 'the keys of JWT_JWKS_URL cannot be loaded'),
  );
  metrics.beforeScrape(() => metrics.keysOutdatedSeconds.set(authenticator.keysOutdatedSeconds()));
  return createAuthHooks({
    authenticator,
    rateOf: (merchantId) => (config.merchants.get(merchantId) ?? config.rules).rateLimit,
    unauthenticatedRate: config.unauthenticatedRateLimit,
  });
};

/** A token bucket (gaps §11): per merchant, and per address for requests without a valid token. `perSecond` 0 is off. */
export type Rate = { perSecond: number; burst: number };

const IPV6_PARTS = 8;
const NETWORK_PARTS = 4;
const partsOf = (text = ''): string[] => text.split(':').filter((part) => part !== '');

/** The IPv4 address, or the /64 of the IPv6 address: a sender that has one address of it has all. */
export const peerOf = ({ remoteAddress = '' }: Pick<Socket, 'remoteAddress'>): string => {
  // One with a dot is an IPv4 address in IPv6.
  if (isIP(remoteAddress) !== 6 || remoteAddress.includes('.')) return remoteAddress;
  const [first, second] = remoteAddress.replace(/%.*/, '').split('::');
  const [head, tail] = [partsOf(first), partsOf(second)];
  const zeros = Array<string>(IPV6_PARTS - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].slice(0, NETWORK_PARTS).join(':');
};

/** A forgotten bucket starts full again, so a flood of names only ever helps itself. */
const BUCKETS_MAX = 10_000;

/** Limits by name. `nowMs` is a clock that never goes back. */
export const createRateLimiter = (
  bucketsMax: number = BUCKETS_MAX,
  nowMs: () => number = () => performance.now(),
) => {
  /** When each bucket is full again: a request draws the time in which one token comes. */
  const fullAtMs = createBoundedMap<number>(bucketsMax);
  const look = (name: string, { perSecond, burst }: Rate) => {
    const now = nowMs();
    const fullAt = Math.max(fullAtMs.get(name) ?? now, now);
    const tokenMs = 1000 / perSecond;
    return { waitMs: fullAt - now - (Math.max(1, burst) - 1) * tokenMs, afterMs: fullAt + tokenMs };
  };
  return {
    hasOne: (name: string, rate: Rate): boolean =>
      rate.perSecond <= 0 || look(name, rate).waitMs <= 0,
    /** Draws one from a bucket: undefined, or the seconds until there is one again, at least 1. */
    take: (name: string, rate: Rate): number | undefined => {
      if (rate.perSecond <= 0) return undefined;
      const { waitMs, afterMs } = look(name, rate);
      if (waitMs > 0) return Math.ceil(waitMs / 1000);
      fullAtMs.set(name, afterMs);
      return undefined;
    },
  };
};
