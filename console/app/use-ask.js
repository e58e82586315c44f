/** Requests of a page as state: made when the page is shown, again on request, and at an interval. */
import { useCallback, useEffect, useState } from 'preact/hooks';
import { ask } from './api.js';

/** @typedef {import('./api.js').Problem} Problem */
/**
 * @template T
 * @typedef {{ value: T | undefined, problem: Problem | undefined, again: () => void }} Loaded
 */

const RETRY_MS = 2_000;

/**
 * The response of a GET. `value` is the last good one, also while `problem` says why there is no newer
 * one; a service that does not respond is asked again by itself.
 * @template T
 * @param {string | undefined} path nothing is requested where left out
 * @param {number} [everyMs] asks again at this interval
 * @returns {Loaded<T>}
 */
export const useAsk = (path, everyMs) => {
  const [known, setKnown] = useState(
    /** @type {{ path?: string, value?: T, problem?: Problem | undefined }} */ ({}),
  );
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    const leaving = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const run = async () => {
      /** @type {import('./api.js').Outcome<T>} */
      const outcome = await ask(path, { signal: leaving.signal });
      if (leaving.signal.aborted) return;
      setKnown((before) => {
        const value = before.path === path ? before.value : undefined;
        return outcome.ok
          ? { path, value: outcome.value }
          : { path, problem: outcome.problem, ...(value !== undefined && { value }) };
      });
      const isAway = !outcome.ok && [0, 503].includes(outcome.problem.status);
      const waitMs = everyMs ?? (isAway ? RETRY_MS : undefined);
      if (waitMs !== undefined) timer = setTimeout(run, waitMs);
    };
    run().catch(() => undefined);
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, round]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  const isCurrent = known.path === path;
  return {
    value: isCurrent ? known.value : undefined,
    problem: isCurrent ? known.problem : undefined,
    again,
  };
};
