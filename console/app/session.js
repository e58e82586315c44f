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
 * Whether the token may use this scope.
 * @param {string} scope
 */
export const hasScope = (scope) => session !== undefined && mayUse(session.claims, scope);

/** Whether the token is of all merchants. */
export const isOfAll = () => session?.claims.merchant === '*';
