/**
 * The first three checks of every merchant request, in their order (gaps §1): token (401),
 * scope (403), rate limit (429). Nothing of the request is looked at before they have passed, so
 * they are a hook, which runs before the body is read.
 */
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type Config, merchantRules } from '../../runtime/config.ts';
import { RETRY_AFTER_SECONDS, reject } from '../errors.ts';
import {
  type Authenticator,
  createAuthenticator,
  type Judgement,
  mayUse,
  type Principal,
  type Scope,
} from './authenticate.ts';
import { createRateLimiter, type Rate } from './rate-limit.ts';

export type AuthorizeOptions = {
  authenticator: Authenticator;
  rateOf(merchantId: string): Rate;
  /** Drawn on, per address, by requests without a valid token alone (gaps §11). */
  unauthenticatedRate: Rate;
};

const retryAfter = (seconds: number) => ({ 'retry-after': String(seconds) });

const rejectRate = (reply: FastifyReply, seconds: number): void => {
  reject(reply, 'RATE_LIMITED', ['too many requests; try again later'], retryAfter(seconds));
};

const rejectUnjudged = (reply: FastifyReply): void => {
  const details = ['the keys that tokens are checked with are out of reach'];
  reject(reply, 'SERVICE_UNAVAILABLE', details, retryAfter(RETRY_AFTER_SECONDS));
};

const rejectScope = (reply: FastifyReply, { merchantId }: Principal, scope: Scope): void => {
  const isForMerchants = scope === 'payments:read' || scope === 'payments:write';
  const why =
    merchantId === '*' && isForMerchants
      ? 'the token is for no single merchant'
      : `the scope ${scope} is required`;
  reject(reply, 'FORBIDDEN', [why]);
};

/**
 * Makes the `onRequest` hooks of routes, each by the scope it needs. Behind the hook
 * `request.caller` is there. The buckets are shared by all hooks of one guard.
 */
export type Authorize = (scope: Scope) => onRequestHookHandler;

export const createAuthorize = (options: AuthorizeOptions): Authorize => {
  const { authenticator, rateOf, unauthenticatedRate } = options;
  const merchants = createRateLimiter();
  const addresses = createRateLimiter();

  const rejectToken = (reply: FastifyReply, details: string[]): void => {
    const address = reply.request.raw.socket.remoteAddress ?? '';
    const seconds = addresses.take(address, unauthenticatedRate);
    if (seconds !== undefined) rejectRate(reply, seconds);
    else reject(reply, 'UNAUTHORIZED', details, { 'www-authenticate': 'Bearer' });
  };

  /** True when the request may go on; else it has been answered. */
  const admit = (reply: FastifyReply, scope: Scope, judgement: Judgement): boolean => {
    if (judgement.ok !== true) {
      if (judgement.ok === false) rejectToken(reply, judgement.details);
      else rejectUnjudged(reply);
      return false;
    }
    const { principal } = judgement;
    reply.request.principal = principal;
    if (!mayUse(principal, scope)) {
      rejectScope(reply, principal, scope);
      return false;
    }
    // seeded bug: rate-drawn
    const seconds = merchants.take(principal.merchantId, rateOf(principal.merchantId));
    if (seconds !== undefined) rejectRate(reply, seconds);
    return seconds === undefined;
  };

  return (scope) => (request, reply, done) => {
    const judgement = authenticator.authenticate(request.raw.rawHeaders);
    if (!(judgement instanceof Promise)) {
      if (admit(reply, scope, judgement)) done();
      return;
    }
    judgement.then((judged) => {
      if (admit(reply, scope, judged)) done();
    }, done);
  };
};

/** Whether a token speaks for all merchants; else the request has been answered 403. */
export const speaksForAll = ({ principal }: FastifyRequest, reply: FastifyReply): boolean => {
  if (principal?.merchantId === '*') return true;
  reject(reply, 'FORBIDDEN', ['a token of all merchants is required']);
  return false;
};

/** The guard of a process by its settings. Throws where the keys cannot be used. */
export const openAuthorize = async (config: Config): Promise<Authorize> => {
  const { keys } = config.tokens;
  return createAuthorize({
    authenticator: await createAuthenticator({
      ...config.tokens,
      keys: keys.kind === 'local' ? { kind: 'local', folder: config.dataDir } : keys,
    }),
    rateOf: (merchantId) => merchantRules(config, merchantId).rateLimit,
    unauthenticatedRate: config.unauthenticatedRateLimit,
  });
};
