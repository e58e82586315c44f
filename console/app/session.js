/**
 * The reader's token. It comes in the fragment of the address or is pasted, and lives in memory, or in the
 * tab's session storage where the reader wants it. The service alone judges it: its claims, read by the
 * service's rules (principalOf of shared/http/request.ts, mayUse of auth/tokens.ts), decide which pages are offered.
 */

/** @typedef {{ merchant: string | undefined, actor: string, scopes: readonly string[] | undefined, expiresAtMs: number | undefined }} Claims */

/** Of a token without scopes. */
const MERCHANT_SCOPES = ['payments:read', 'payments:write', 'webhooks:write'];

/** @param {unknown} value */
const nameOf = (value) =>
  typeof value === 'string' && value !== '' ? value.normalize('NFC') : undefined;

/** @param {unknown} scope */
const scopesOf = (scope) => {
  if (scope === undefined) return undefined;
  return Array.isArray(scope) ? scope : String(scope).split(' ');
};

/** @param {unknown} exp may be a number that no calendar has */
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
 * Undefined where the text is no JWT. The first of the merchant claims that is present counts.
 * @type {(token: string, merchantClaims: readonly string[]) => Claims | undefined}
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

/** @type {(claims: Claims, scope: string) => boolean} as the service would decide */
export const tokenMayUse = ({ merchant, scopes }, scope) => {
  if (!MERCHANT_SCOPES.includes(scope)) return scopes?.includes(scope) === true;
  return merchant !== '*' && (scopes === undefined || scopes.includes(scope));
};

/** @typedef {{ token: string, claims: Claims } | undefined} Session */

const KEPT = 'payments-console-token';

/** @type {Session} */
let session;

/** By the service's setting, which the page came with. */
const merchantClaims = () => {
  const content = document.querySelector('meta[name=merchant-claims]')?.getAttribute('content');
  return (content ?? '').split(',').map(decodeURIComponent);
};

/** Each change is an event `session` of the window. @returns {Session} */
export const currentSession = () => session;

/** @type {(text: string, isKept: boolean) => boolean} false where the text is no token; `isKept`: a reload keeps it */
export const openSession = (text, isKept) => {
  const token = text.trim().replace(/^Bearer\s+/i, '');
  const claims = claimsOf(token, merchantClaims());
  if (claims === undefined) return false;
  if (isKept) sessionStorage.setItem(KEPT, token);
  else sessionStorage.removeItem(KEPT);
  session = { token, claims };
  dispatchEvent(new Event('session'));
  return true;
};

export const closeSession = () => {
  sessionStorage.removeItem(KEPT);
  session = undefined;
  dispatchEvent(new Event('session'));
};

/** @param {Claims} claims */
const readerOf = ({ actor, merchant }) =>
  `${actor} (${merchant === '*' ? 'all merchants' : (merchant ?? 'no merchant')})`;

/** @param {string} given actions are recorded under its name, so the open session's reader decides */
const mayReplace = (given) => {
  const claims = claimsOf(given, merchantClaims());
  if (session === undefined || claims === undefined) return true;
  const [own, other] = [readerOf(session.claims), readerOf(claims)];
  return (
    own === other ||
    confirm(
      `The link that you followed has the token of ${other}. The console is open for ${own}. Go on as ${other}? All that you do is recorded under that name.`,
    )
  );
};

const takeFromAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  if (mayReplace(given)) openSession(given, false);
};

/** Opens the kept session, and takes the token of the address, now and whenever it gets one. */
export const startSession = () => {
  const kept = sessionStorage.getItem(KEPT);
  if (kept !== null) openSession(kept, true);
  addEventListener('hashchange', takeFromAddress);
  takeFromAddress();
};

/** @param {string} scope */
export const hasScope = (scope) => session !== undefined && tokenMayUse(session.claims, scope);

export const isOfAll = () => session?.claims.merchant === '*';
