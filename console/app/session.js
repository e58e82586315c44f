/**
 * The reader's token. It comes in the fragment of the address or is pasted, and lives in memory; in
 * the tab's session storage only where the reader wants it. The service alone judges it: what is read
 * here only decides which pages are offered.
 */

/** @typedef {{ merchant: string, actor: string, scopes: readonly string[], expiresAtMs: number | undefined }} Claims */
/** @typedef {{ token: string, claims: Claims } | undefined} Session */

const KEPT = 'payments-console-token';

/** @type {Session} */
let session;
/** @type {Set<() => void>} */
const listeners = new Set();

/**
 * What the token says of itself; undefined where it is no JWT.
 * @param {string} token
 * @returns {Claims | undefined}
 */
export const claimsOf = (token) => {
  try {
    const [, part = ''] = token.split('.');
    const bytes = Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), (sign) =>
      sign.charCodeAt(0),
    );
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    const { merchant_id: merchant, sub, scope = '', exp } = claims;
    if (typeof merchant !== 'string') return undefined;
    return {
      merchant,
      actor: typeof sub === 'string' ? sub : merchant,
      scopes: String(scope).split(' '),
      expiresAtMs: typeof exp === 'number' ? exp * 1000 : undefined,
    };
  } catch {
    return undefined;
  }
};

/** @returns {Session} */
export const currentSession = () => session;

/**
 * Calls back after each change; returns the end of it.
 * @param {() => void} listener
 */
export const onSession = (listener) => {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
};

/**
 * Takes a token; false where the text is none.
 * @param {string} text
 * @param {boolean} isKept whether this tab's session storage has it, so that a reload keeps it
 */
export const openSession = (text, isKept) => {
  const token = text.trim().replace(/^Bearer\s+/i, '');
  const claims = claimsOf(token);
  if (claims === undefined) return false;
  if (isKept) sessionStorage.setItem(KEPT, token);
  session = { token, claims };
  for (const listener of listeners) listener();
  return true;
};

/** Forgets the token, here and in the tab. */
export const closeSession = () => {
  sessionStorage.removeItem(KEPT);
  session = undefined;
  for (const listener of listeners) listener();
};

/** Takes the token of the address, which is removed from there first; false where it has none. */
const takeFromAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given === null) return false;
  history.replaceState(null, '', location.pathname + location.search);
  return openSession(given, false);
};

/** Takes the token of the address, now and whenever it gets one, else the one that the tab keeps. */
export const startSession = () => {
  addEventListener('hashchange', takeFromAddress);
  const kept = sessionStorage.getItem(KEPT);
  if (!takeFromAddress() && kept !== null) openSession(kept, true);
};

/**
 * Whether the token has this scope.
 * @param {string} scope
 */
export const hasScope = (scope) => session?.claims.scopes.includes(scope) === true;

/** Whether the token is of all merchants. */
export const isOfAll = () => session?.claims.merchant === '*';
