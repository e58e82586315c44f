/**
 * The first checks of every route that needs a token, in their order (gaps §1): who sent it (401),
 * whether the scope is there (403), whether the rate allows it (429). They are hooks, which run
 * before the body is read: nothing of the request is looked at before they have passed.
 */
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { type Config, merchantRules } from '../../runtime/config.ts';
import type { Log } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { RETRY_LATER, reject } from '../errors.ts';
import type { Principal, Scope } from './principal.ts';
import { createRateLimiter, type Rate, senderOf } from './rate-limit.ts';
import type { Authentication } from './seen-tokens.ts';
import { type Authenticator, createAuthenticator, isOfMerchants, mayUse } from './tokens.ts';

export type AuthOptions = {
  authenticator: Pick<Authenticator, 'authenticate'>;
  rateOf(merchantId: string): Rate;
  /** Drawn on, per address, by requests without a valid token alone (gaps §11). */
  unauthenticatedRate: Rate;
};

/**
 * The `onRequest` hooks of a route by the scope that it takes: `authenticate`, behind which
 * `request.principal` is there, and `authorize`. The rates are shared by all routes.
 */
export type AuthHooks = (scope: Scope) => onRequestHookHandler[];

const rejectRate = (reply: FastifyReply, seconds: number): void => {
  reject(reply, 'RATE_LIMITED', ['too many requests; try again later'], {
    'retry-after': String(seconds),
  });
};

const rejectUnchecked = (reply: FastifyReply): void => {
  const details = ['the keys that tokens are checked with are out of reach'];
  reject(reply, 'SERVICE_UNAVAILABLE', details, RETRY_LATER);
};

const rejectScope = (reply: FastifyReply, { merchantId }: Principal, scope: Scope): void => {
  const why =
    merchantId === '*' && isOfMerchants(scope)
      ? 'the token is for no single merchant'
      : `the scope ${scope} is required`;
  reject(reply, 'FORBIDDEN', [why]);
};

const authenticateHook = ({ authenticator, unauthenticatedRate }: AuthOptions) => {
  const addresses = createRateLimiter();
  const addressOf = ({ raw }: FastifyRequest): string => senderOf(raw.socket);

  const rejectToken = (reply: FastifyReply, details: string[]): void => {
    const seconds = addresses.take(addressOf(reply.request), unauthenticatedRate);
    if (seconds !== undefined) rejectRate(reply, seconds);
    else reject(reply, 'UNAUTHORIZED', details, { 'www-authenticate': 'Bearer' });
  };

  const proceed = (reply: FastifyReply, known: Authentication, done: () => void): void => {
    if (known.ok === true) {
      reply.request.principal = known.principal;
      done();
    } else if (known.ok === false) rejectToken(reply, known.details);
    else rejectUnchecked(reply);
  };

  const authenticate: onRequestHookHandler = (request, reply, done) => {
    // An unknown key is worth no fetch for an address that has sent too many bad tokens.
    const mayLoad = () => addresses.hasOne(addressOf(request), unauthenticatedRate);
    const known = authenticator.authenticate(request.raw.rawHeaders, mayLoad);
    if (!(known instanceof Promise)) proceed(reply, known, done);
    else known.then((checked) => proceed(reply, checked, done), done);
  };
  return authenticate;
};

const authorizeHook = ({ rateOf }: AuthOptions) => {
  const merchants = createRateLimiter();
  return (scope: Scope): onRequestHookHandler =>
    ({ principal }, reply, done) => {
      if (principal === undefined) throw new Error('authorize runs before authenticate');
      const { merchantId } = principal;
      if (!mayUse(principal, scope)) {
        rejectScope(reply, principal, scope);
        return;
      }
      const seconds = merchants.take(merchantId, rateOf(merchantId));
      if (seconds === undefined) done();
      else rejectRate(reply, seconds);
    };
};

/** Makes the hooks of one server. */
export const createAuthHooks = (options: AuthOptions): AuthHooks => {
  const authenticate = authenticateHook(options);
  const authorize = authorizeHook(options);
  return (scope) => [authenticate, authorize(scope)];
};

/** The hooks of a process by its settings. Throws where the keys cannot be used. */
export const openAuthHooks = async (
  config: Config,
  { log, metrics }: { log: Pick<Log, 'warn'>; metrics: Metrics },
): Promise<AuthHooks> => {
  const { keys } = config.tokens;
  const authenticator = await createAuthenticator(
    {
      ...config.tokens,
      keys: keys.kind === 'local' ? { kind: 'local', folder: config.dataDir } : keys,
    },
    (error) => log.warn({ err: error }, 'the keys of JWT_JWKS_URL cannot be loaded'),
  );
  metrics.beforeScrape(() => metrics.keysOutdatedSeconds.set(authenticator.keysOutdatedSeconds()));
  return createAuthHooks({
    authenticator,
    rateOf: (merchantId) => merchantRules(config, merchantId).rateLimit,
    unauthenticatedRate: config.unauthenticatedRateLimit,
  });
};
