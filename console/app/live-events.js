/** The log as it grows: server-sent events, resumed by position after a lost connection. */
import { useEffect, useReducer } from 'preact/hooks';
import { follow } from './api.js';
import { pathOf } from './format.js';

/** @typedef {import('../../audit/contract.ts').AuditEvent | import('../../audit/contract.ts').AuditUnreadableEvent} ShownEvent */
/** @typedef {import('./api.js').Problem} Problem */
/**
 * `shown` newest first; `waiting` came while the list was paused.
 * @typedef {{ shown: readonly ShownEvent[], waiting: readonly ShownEvent[], isPaused: boolean, isConnected: boolean, problem: Problem | undefined, seen: number }} LiveState
 */
/** @typedef {{ kind: 'events', events: readonly ShownEvent[] } | { kind: 'pause', isPaused: boolean } | { kind: 'connected' } | { kind: 'lost', problem: Problem | undefined }} LiveAction */

/** How many events the page keeps: older ones are on the pages of their payments. */
export const KEPT_MAX = 1_000;
const RECONNECT_MS = 1_000;
/** Events that came within one frame are shown together. */
const FLUSH_MS = 100;

/** @type {LiveState} */
export const LIVE_START = {
  shown: [],
  waiting: [],
  isPaused: false,
  isConnected: false,
  problem: undefined,
  seen: 0,
};

/** @type {(newer: readonly ShownEvent[], older: readonly ShownEvent[]) => readonly ShownEvent[]} */
const newestFirst = (newer, older) => [...newer, ...older].slice(0, KEPT_MAX);

/** @type {(state: LiveState, action: LiveAction) => LiveState} */
export const liveAfter = (state, action) => {
  switch (action.kind) {
    case 'events': {
      const newer = action.events.toReversed();
      const list = state.isPaused ? 'waiting' : 'shown';
      const seen = state.seen + newer.length;
      return { ...state, seen, [list]: newestFirst(newer, state[list]) };
    }
    case 'pause': {
      if (action.isPaused) return { ...state, isPaused: true };
      const shown = newestFirst(state.waiting, state.shown);
      return { ...state, isPaused: false, shown, waiting: [] };
    }
    case 'connected':
      return { ...state, isConnected: true, problem: undefined };
    case 'lost':
      return { ...state, isConnected: false, problem: action.problem };
  }
};

/** @param {number} ms */
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {string} from `now`, `start` or a position */
export const useLiveEvents = (from) => {
  const [state, act] = useReducer(liveAfter, LIVE_START);
  useEffect(() => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const path = pathOf('/audit/v1/events/stream', { from });
    /** @type {ShownEvent[]} */
    let arrived = [];
    /** @type {string | undefined} */
    let last;
    const flushing = setInterval(() => {
      if (arrived.length > 0) act({ kind: 'events', events: arrived });
      arrived = [];
    }, FLUSH_MS);
    /** @param {import('./api.js').ServerSent} one */
    const onEvent = ({ event, id, data }) => {
      if (event === 'token-expired') return;
      act({ kind: 'connected' });
      last = id ?? last;
      if (event !== 'caught-up') arrived.push(JSON.parse(data));
    };
    const run = async () => {
      while (!signal.aborted) {
        const headers = last === undefined ? {} : { 'last-event-id': last };
        const problem = await follow(path, { headers, signal, onEvent });
        if (signal.aborted) return;
        act({ kind: 'lost', problem });
        // A token that may not read the log, or has expired, would be rejected again.
        if (problem !== undefined && [401, 403].includes(problem.status)) return;
        await wait(RECONNECT_MS);
      }
    };
    run();
    return () => {
      leaving.abort();
      clearInterval(flushing);
    };
  }, [from]);
  return { state, act };
};
