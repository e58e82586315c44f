/**
 * The first three checks of every merchant request, in their order (decisions §1): token (401),
 * scope (403), rate limit (429). Nothing of the request is looked at before they have passed, so
 * they are a hook, which runs before the body is read.
 */
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type Config, merchantRules } from '../../runtime/config.ts';
import { RETRY_AFTER_SECONDS, refuse } from '../errors.ts';
import {
  type Authenticator,
  type Caller,
  createAuthenticator,
  mayUse,
  type Scope,
  type Verdict,
} from './authenticate.ts';
import { createRateLimiter, type Rate } from './rate-limit.ts';

export type GuardOptions = {
  authenticator: Authenticator;
  rateOf(merchantId: string): Rate;
  /** Drawn on, per address, by requests without a valid token alone (decisions §11). */
  unauthenticatedRate: Rate;
};

const retryAfter = (seconds: number) => ({ 'retry-after': String(seconds) });

const refuseRate = (reply: FastifyReply, seconds: number): void => {
  refuse(reply, 'RATE_LIMITED', ['too many requests; try again later'], retryAfter(seconds));
};

const refuseUnjudged = (reply: FastifyReply): void => {
  const details = ['the keys that tokens are checked with are out of reach'];
  refuse(reply, 'SERVICE_UNAVAILABLE', details, retryAfter(RETRY_AFTER_SECONDS));
};

const refuseScope = (reply: FastifyReply, { merchantId }: Caller, scope: Scope): void => {
  const isForMerchants = scope === 'payments:read' || scope === 'payments:write';
  const why =
    merchantId === '*' && isForMerchants
      ? 'the token is for no single merchant'
      : `the scope ${scope} is required`;
  refuse(reply, 'FORBIDDEN', [why]);
};

/**
 * Makes the `onRequest` hooks of routes, each by the scope it needs. Behind the hook
 * `request.caller` is there. The buckets are shared by all hooks of one guard.
 */
export type Guard = (scope: Scope) => onRequestHookHandler;

export const createGuard = (options: GuardOptions): Guard => {
  const { authenticator, rateOf, unauthenticatedRate } = options;
  const merchants = createRateLimiter();
  const addresses = createRateLimiter();

  const refuseToken = (reply: FastifyReply, details: string[]): void => {
    const address = reply.request.raw.socket.remoteAddress ?? '';
    const seconds = addresses.take(address, unauthenticatedRate);
    if (seconds !== undefined) refuseRate(reply, seconds);
    else refuse(reply, 'UNAUTHORIZED', details, { 'www-authenticate': 'Bearer' });
  };

  /** True when the request may go on; else it has been answered. */
  const admit = (reply: FastifyReply, scope: Scope, verdict: Verdict): boolean => {
    if (verdict.ok !== true) {
      if (verdict.ok === false) refuseToken(reply, verdict.details);
      else refuseUnjudged(reply);
      return false;
    }
    const { caller } = verdict;
    reply.request.caller = caller;
    if (!mayUse(caller, scope)) {
      refuseScope(reply, caller, scope);
      return false;
    }
    const seconds = merchants.take(caller.merchantId, rateOf(caller.merchantId));
    if (seconds !== undefined) refuseRate(reply, seconds);
    return seconds === undefined;
  };

  return (scope) => (request, reply, done) => {
    const verdict = authenticator.authenticate(request.raw.rawHeaders);
    if (!(verdict instanceof Promise)) {
      if (admit(reply, scope, verdict)) done();
      return;
    }
    verdict.then((judged) => {
      if (admit(reply, scope, judged)) done();
    }, done);
  };
};

/** Whether a token speaks for all merchants; else the request has been answered 403. */
export const speaksForAll = ({ caller }: FastifyRequest, reply: FastifyReply): boolean => {
  if (caller?.merchantId === '*') return true;
  refuse(reply, 'FORBIDDEN', ['a token of all merchants is required']);
  return false;
};

/** The guard of a process by its settings. Throws where the keys cannot be used. */
export const openGuard = async (config: Config): Promise<Guard> => {
  const { keys } = config.tokens;
  return createGuard({
    authenticator: await createAuthenticator({
      ...config.tokens,
      keys: keys.kind === 'local' ? { kind: 'local', folder: config.dataDir } : keys,
    }),
    rateOf: (merchantId) => merchantRules(config, merchantId).rateLimit,
    unauthenticatedRate: config.unauthenticatedRateLimit,
  });
};
