/**
 * What a token says of itself, read by the service's rules (shared/http/auth/principal.ts, mayUse of
 * tokens.ts): a page that is not offered, or is offered in vain, would be our mistake. The service alone
 * judges the token.
 */

/** @typedef {{ merchant: string | undefined, actor: string, scopes: readonly string[] | undefined, expiresAtMs: number | undefined }} Claims */

/** The scopes that a token without any has. */
const MERCHANT_SCOPES = ['payments:read', 'payments:write', 'webhooks:write'];

/** @param {unknown} value */
const nameOf = (value) =>
  typeof value === 'string' && value !== '' ? value.normalize('NFC') : undefined;

/** @param {unknown} scope */
const scopesOf = (scope) => {
  if (scope === undefined) return undefined;
  return Array.isArray(scope) ? scope : String(scope).split(' ');
};

/**
 * The end of a token as a moment; undefined where no calendar has it.
 * @param {unknown} exp
 */
const momentOf = (exp) => {
  const ms = typeof exp === 'number' ? exp * 1000 : Number.NaN;
  return Number.isNaN(new Date(ms).getTime()) ? undefined : ms;
};

/** @param {string} token */
const payloadOf = (token) => {
  const [, part = ''] = token.split('.');
  const bytes = Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), (sign) =>
    sign.charCodeAt(0),
  );
  return JSON.parse(new TextDecoder().decode(bytes));
};

/**
 * Undefined where the text is no JWT.
 * @param {string} token
 * @param {readonly string[]} merchantClaims the claims that name the merchant, of which the first present counts
 * @returns {Claims | undefined}
 */
export const claimsOf = (token, merchantClaims) => {
  try {
    const payload = payloadOf(token);
    const claim = merchantClaims.find((name) => Object.hasOwn(payload, name));
    const merchant = claim === undefined ? undefined : nameOf(payload[claim]);
    return {
      merchant,
      actor: nameOf(payload.sub) ?? merchant ?? '',
      scopes: scopesOf(payload.scope),
      expiresAtMs: momentOf(payload.exp),
    };
  } catch {
    return undefined;
  }
};

/**
 * Whether the service would let these claims use a scope.
 * @param {Claims} claims
 * @param {string} scope
 */
export const mayUse = ({ merchant, scopes }, scope) => {
  if (!MERCHANT_SCOPES.includes(scope)) return scopes?.includes(scope) === true;
  return merchant !== '*' && (scopes === undefined || scopes.includes(scope));
};
