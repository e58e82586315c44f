/** Bearer tokens (gaps §10): a JWT becomes the merchant, the actor and their rights. */
import { hash } from 'node:crypto';
import { createLocalJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import type { TokenKeys } from '../../runtime/config.ts';
import {
  LOCAL_KEY_ALGORITHM,
  PUBLIC_KEY_ALGORITHMS,
  SECRET_ALGORITHM,
} from '../../runtime/settings/table.ts';
import { type Principal, principalOf, type Scope, soleHeader } from '../request.ts';
import { followIssuerKeys, type IssuerKeys, KeysOutOfReach } from './issuer-keys.ts';
import { importSecret, openLocalKeys } from './local-keys.ts';

export type Authentication =
  | { ok: true; principal: Principal }
  /** `reason` is for the log alone, and holds nothing of the token. */
  | { ok: false; details: string[]; reason?: string }
  /** The issuer's keys are out of reach, so the token could not be checked. */
  | { ok: 'unknown' };

export type TokenSettings = {
  keys: TokenKeys;
  merchantClaims: readonly string[];
  issuer?: string | undefined;
  audience?: string | undefined;
  /** Narrows the algorithms of a key set; a secret always means HS256 alone. */
  algorithms?: readonly string[] | undefined;
};

export type Authenticator = {
  /** Returns no promise for a token checked before. `mayLoad`: an unknown key may be loaded from the issuer. */
  authenticate(
    rawHeaders: readonly string[],
    mayLoad?: () => boolean,
    connection?: object,
  ): Authentication | Promise<Authentication>;
  /** See IssuerKeys; 0 where the keys have no address. */
  keysOutdatedSeconds(): number;
};

const rejected = (detail: string, reason?: string): Authentication => ({
  ok: false,
  details: [detail],
  ...(reason !== undefined && { reason }),
});
const MISSING = rejected('the Authorization header is required');
const EXPIRED = rejected('the token has expired');
const NO_BEARER = rejected('the Authorization header must be: Bearer <token>');
const malformed = (reason: string) => rejected('the token format is invalid', reason);
const notOurs = (reason: string): Authentication =>
  rejected('the token is not signed by a key of this service', reason);
const NO_JWT = malformed('it is no JWT that can be read');
const UNCHECKED: Authentication = { ok: 'unknown' };

const NOT_BEFORE_TOLERANCE_SECONDS = 5;
/** A token seen before stays valid that long after its issuer withdrew the key. */
const KEY_SET_RECHECK_MS = 60_000;
const VERIFIED_MAX = 10_000;
type Verified = { result: Authentication; untilMs: number };

type Verification = {
  find: IssuerKeys['find'];
  algorithms: string[];
  /** Left out for keys that never change. */
  recheckMs?: number;
  outdatedSeconds?: IssuerKeys['outdatedSeconds'];
};

const verificationBy = async (
  { keys, algorithms }: TokenSettings,
  onFailure?: (error: unknown) => void,
): Promise<Verification> => {
  const allowed = PUBLIC_KEY_ALGORITHMS.filter((name) => algorithms?.includes(name) ?? true);
  switch (keys.kind) {
    case 'secret': {
      const secret = await importSecret(keys.secret);
      return { find: async () => secret, algorithms: [SECRET_ALGORITHM] };
    }
    case 'jwks-file':
      return { find: createLocalJWKSet(keys.jwks), algorithms: allowed };
    case 'jwks-url': {
      const issuer = followIssuerKeys({ url: keys.url, onFailure });
      return { ...issuer, algorithms: allowed, recheckMs: KEY_SET_RECHECK_MS };
    }
    case 'local': {
      const { publicJwk } = await openLocalKeys(keys.folder);
      const find = createLocalJWKSet({ keys: [publicJwk] });
      return { find, algorithms: [LOCAL_KEY_ALGORITHM] };
    }
  }
};

const ACCESS_TOKEN_TYPE = /^(application\/)?(at\+)?jwt$/i;

/** An id or logout token of the same issuer is no access token (gaps §10). */
const isAccessToken = (typ: unknown): boolean =>
  typ === undefined || (typeof typ === 'string' && ACCESS_TOKEN_TYPE.test(typ));

/** Of a well-formed token, whatever its key. */
const SIGNATURE_FAULTS: Readonly<Record<string, string>> = {
  [errors.JWSSignatureVerificationFailed.code]:
    'it is signed by another key than the one that is set',
  [errors.JWKSNoMatchingKey.code]: 'no key that is set has its kid and algorithm',
  [errors.JOSEAlgNotAllowed.code]: 'its algorithm is not allowed',
};

const failureOf = (error: unknown): Authentication => {
  if (error instanceof errors.JWTExpired) return EXPIRED;
  if (error instanceof errors.JWTClaimValidationFailed)
    return malformed(`its ${error.claim} is missing or not the one that is set`);
  // A local key set never changes, so a token it cannot verify is invalid (401), not unchecked (503).
  if (error instanceof KeysOutOfReach) return UNCHECKED;
  const code = error instanceof errors.JOSEError ? error.code : '';
  const reason = SIGNATURE_FAULTS[code];
  return reason === undefined ? NO_JWT : notOurs(reason);
};

/** Canonical base64url (gaps §10): decoders drop bits, so a changed character might verify. */
const hasPlainSignature = (token: string): boolean => {
  const signature = token.slice(token.lastIndexOf('.') + 1);
  return Buffer.from(signature, 'base64url').toString('base64url') === signature;
};

const BEARER = /^bearer +([^\s]+)$/i;

/** Throws DataFolderRefused for a damaged local key; `onFailure` is called when the keys of an address fail to load. */
export const createAuthenticator = async (
  settings: TokenSettings,
  onFailure?: (error: unknown) => void,
): Promise<Authenticator> => {
  const {
    find,
    algorithms,
    recheckMs = Number.POSITIVE_INFINITY,
    outdatedSeconds = () => 0,
  } = await verificationBy(settings, onFailure);
  // By digest, so that no token stays in memory.
  const verified = createBoundedMap<Verified>(VERIFIED_MAX);
  // Its last request keeps a connection's token in memory anyway.
  const lastOn = new WeakMap<object, { header: string; known: Verified }>();
  const options = {
    algorithms,
    requiredClaims: ['exp'],
    clockTolerance: NOT_BEFORE_TOLERANCE_SECONDS,
    ...(settings.issuer !== undefined && { issuer: settings.issuer }),
    ...(settings.audience !== undefined && { audience: settings.audience }),
  };
  const verify = async (token: string, digest: string, mayLoad: () => boolean) => {
    if (!hasPlainSignature(token)) return NO_JWT;
    try {
      const keyOf: JWTVerifyGetKey = (header, jws) => find(header, jws, mayLoad);
      const { payload, protectedHeader } = await jwtVerify(token, keyOf, options);
      if (!isAccessToken(protectedHeader.typ)) return malformed('its typ is no access token');
      const { exp } = payload;
      if (!Number.isFinite(exp) || exp === undefined) return malformed('its exp is no time');
      const nowMs = Date.now();
      // The tolerance is for `nbf` alone: a token is expired from `exp` on.
      if (nowMs >= exp * 1000) return EXPIRED;
      const named = principalOf(payload, settings.merchantClaims);
      if (named === undefined)
        return malformed('it names no merchant, or its scope has another form');
      const result = { ok: true as const, principal: { ...named, expiresAtSeconds: exp } };
      verified.set(digest, { result, untilMs: Math.min(exp * 1000, nowMs + recheckMs) });
      return result;
    } catch (error) {
      return failureOf(error);
    }
  };

  return {
    keysOutdatedSeconds: outdatedSeconds,
    authenticate: (rawHeaders, mayLoad = () => true, connection = {}) => {
      const header = soleHeader(rawHeaders, 'authorization');
      if (header === undefined || header === '') return MISSING;
      const last = lastOn.get(connection);
      if (last?.header === header && Date.now() < last.known.untilMs) return last.known.result;
      const token = header === null ? undefined : BEARER.exec(header)?.[1];
      if (header === null || token === undefined) return NO_BEARER;
      const digest = hash('sha256', token, 'base64');
      const known = verified.get(digest);
      if (known === undefined || Date.now() >= known.untilMs) return verify(token, digest, mayLoad);
      lastOn.set(connection, { header, known });
      return known.result;
    },
  };
};

/** The scopes of a token without a scope claim. */
const MERCHANT_SCOPES: readonly Scope[] = ['payments:read', 'payments:write', 'webhooks:write'];

export const isOfMerchants = (scope: Scope): boolean => MERCHANT_SCOPES.includes(scope);

/** A one-merchant token without scopes has all merchant scopes; other scopes are given by name (gaps §10). */
export const mayUse = ({ merchantId, scopes }: Principal, scope: Scope): boolean => {
  if (!isOfMerchants(scope)) return scopes?.has(scope) === true;
  return merchantId !== '*' && (scopes === undefined || scopes.has(scope));
};
