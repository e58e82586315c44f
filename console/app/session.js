/**
 * The reader's token. It comes in the fragment of the address or is pasted, and lives in memory; in
 * the tab's session storage only where the reader wants it. The service alone judges it: what is read
 * here only decides which pages are offered.
 */

import { claimsOf, mayUse } from './claims.js';

/** @typedef {{ token: string, claims: import('./claims.js').Claims } | undefined} Session */

const KEPT = 'payments-console-token';

/** @type {Session} */
let session;
/** @type {Set<() => void>} */
const listeners = new Set();

/** The claims that name the merchant of a token, by the service's setting; the page came with them. */
const merchantClaims = () => {
  const content = document.querySelector('meta[name=merchant-claims]')?.getAttribute('content');
  return (content ?? '').split(',').map(decodeURIComponent);
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
  const claims = claimsOf(token, merchantClaims());
  if (claims === undefined) return false;
  if (isKept) sessionStorage.setItem(KEPT, token);
  else sessionStorage.removeItem(KEPT);
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

/** @param {import('./claims.js').Claims} claims */
const readerOf = ({ actor, merchant }) =>
  `${actor} (${merchant === '*' ? 'all merchants' : (merchant ?? 'no merchant')})`;

/**
 * Whether the reader whose session is open lets another one take its place: what is done then is recorded
 * under the other's name.
 * @param {string} given
 */
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

/** Takes the token of the address, which is removed from there first. */
const takeFromAddress = () => {
  const given = new URLSearchParams(location.hash.slice(1)).get('token');
  if (given === null) return;
  history.replaceState(null, '', location.pathname + location.search);
  if (mayReplace(given)) openSession(given, false);
};

/** Opens the session that the tab keeps, and takes the token of the address, now and whenever it gets one. */
export const startSession = () => {
  const kept = sessionStorage.getItem(KEPT);
  if (kept !== null) openSession(kept, true);
  addEventListener('hashchange', takeFromAddress);
  takeFromAddress();
};

/**
 * Whether the token may use this scope.
 * @param {string} scope
 */
export const hasScope = (scope) => session !== undefined && mayUse(session.claims, scope);

/** Whether the token is of all merchants. */
export const isOfAll = () => session?.claims.merchant === '*';
