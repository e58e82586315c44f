/** Requests to the service with the reader's token, also as state of a page. */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { currentSession } from './session.js';

/** @typedef {{ status: number, code: string, sentence: string, details: readonly string[], next: string }} Problem */
/** @typedef {RequestInit & { headers?: Record<string, string> }} Init */
/** @template T @typedef {{ ok: true, value: T } | { ok: false, problem: Problem }} Outcome */

const NEXT = new Map([
  [0, 'The page asks again when the service responds.'],
  [401, 'Paste a new token; `npx payments console` prints an address with one.'],
  [403, 'Use a token with the scope that this page needs.'],
  [404, 'Check the id. A payment of another merchant looks the same as one that does not exist.'],
  [429, 'Wait a moment.'],
  [503, 'Wait a moment; `npx payments doctor` says what is the matter.'],
]);

/** @type {(status: number, body: { error?: string, message?: string, details?: readonly string[] }) => Problem} */
const problemBy = (status, body) => {
  const { error = 'UNKNOWN', message = `The service responded ${status}.`, details = [] } = body;
  return { status, code: error, sentence: message, details, next: NEXT.get(status) ?? '' };
};

const UNREACHABLE = problemBy(0, {
  error: 'UNREACHABLE',
  message: 'The service does not respond.',
});

/** @param {Response} response */
const problemOf = async (response) =>
  problemBy(response.status, await response.json().catch(() => ({})));

/** Longer than another projector takes to take over. */
const STANDS_BY_MS_MAX = 12_000;
const STANDS_BY_MS = 250;

/**
 * Again while it reached the projector that stands by: behind a gateway the next may reach the other one.
 * @type {(path: string, init?: Init) => Promise<Response>} throws TypeError where the service cannot be reached
 */
const request = async (path, init = {}) => {
  const token = currentSession()?.token;
  const headers = { ...init.headers, ...(token && { authorization: `Bearer ${token}` }) };
  const untilMs = performance.now() + STANDS_BY_MS_MAX;
  for (;;) {
    const response = await fetch(path, { ...init, headers, cache: 'no-store', redirect: 'error' });
    if (response.headers.get('rejection') !== 'STANDING_BY' || performance.now() > untilMs)
      return response;
    await new Promise((resume) => setTimeout(resume, STANDS_BY_MS));
  }
};

/** @type {<T>(path: string, init: Init, read: (response: Response) => Promise<T>) => Promise<Outcome<T>>} throws only for an abort by `init.signal` */
const outcomeOf = async (path, init, read) => {
  try {
    const response = await request(path, init);
    if (!response.ok) return { ok: false, problem: await problemOf(response) };
    return { ok: true, value: await read(response) };
  } catch (error) {
    if (init.signal?.aborted) throw error;
    return { ok: false, problem: UNREACHABLE };
  }
};

/** @type {<T>(path: string, init?: Init) => Promise<Outcome<T>>} throws as `outcomeOf` does */
export const ask = (path, init = {}) => outcomeOf(path, init, (response) => response.json());

/** @type {<T>(path: string, body?: unknown) => Promise<Outcome<T>>} a POST with JSON */
export const send = (path, body) =>
  ask(path, { method: 'POST', ...(body !== undefined && { body: JSON.stringify(body) }) });

/** @param {string} path gives lines of JSON */
export const download = (path) =>
  outcomeOf(
    path,
    { headers: { accept: 'application/x-ndjson' } },
    async (response) => new Uint8Array(await response.arrayBuffer()),
  );

/** @typedef {{ event: string, id: string | undefined, data: string }} ServerSent */

/** @typedef {{ method?: string, headers?: Record<string, string>, signal: AbortSignal, onEvent: (event: ServerSent) => void }} Following */
/**
 * Reads server-sent events until the stream ends or `signal` is aborted. Resolves with the problem of a
 * rejection or a lost connection.
 * @type {(path: string, following: Following) => Promise<Problem | undefined>}
 */
export const follow = async (path, { method = 'GET', headers, signal, onEvent }) => {
  try {
    const accept = { accept: 'text/event-stream' };
    const response = await request(path, { method, headers: { ...headers, ...accept }, signal });
    if (!response.ok || response.body === null) return await problemOf(response);
    const events = response.body
      .pipeThrough(new TextDecoderStream())
      .pipeThrough(new EventSourceParserStream());
    const reader = events.getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const { event = 'message', id, data } = read.value;
      onEvent({ event, id, data });
    }
    return undefined;
  } catch {
    return signal.aborted ? undefined : UNREACHABLE;
  }
};

/**
 * As `follow`, for a stream that ends with `result` or `failed`: without either the connection was lost.
 * @type {(path: string, following: Following) => Promise<Problem | undefined>}
 */
export const followToResult = async (path, options) => {
  let hasEnded = false;
  const problem = await follow(path, {
    ...options,
    onEvent: (one) => {
      hasEnded ||= one.event === 'result' || one.event === 'failed';
      options.onEvent(one);
    },
  });
  return problem ?? (hasEnded || options.signal.aborted ? undefined : UNREACHABLE);
};

/**
 * A long request that ends with a result; `start` does nothing while it runs. Leaving the page ends it.
 * @template T
 * @template [P=never]
 * @param {string} path
 * @param {string} [method]
 */
export const useRun = (path, method) => {
  /** @type {{ isRunning: boolean, progress?: P, result?: T, problem?: Problem }} */
  const idle = { isRunning: false };
  const [run, setRun] = useState(idle);
  const leaving = useRef(new AbortController());
  useEffect(() => () => leaving.current.abort(), []);
  const start = async () => {
    if (run.isRunning) return;
    setRun({ isRunning: true });
    const problem = await followToResult(path, {
      ...(method && { method }),
      signal: leaving.current.signal,
      onEvent: ({ event, data }) => {
        const value = JSON.parse(data);
        if (event === 'progress') setRun({ isRunning: true, progress: value });
        if (event === 'result') setRun({ isRunning: false, result: value });
        if (event === 'failed') setRun({ isRunning: false, problem: problemBy(503, value) });
      },
    });
    if (problem !== undefined) setRun({ isRunning: false, problem });
  };
  return { ...run, start };
};

/** The problem of the last attempt; `attempt` gives the value, undefined where there was a problem. */
export const useAttempt = () => {
  const [problem, setProblem] = useState(/** @type {Problem | undefined} */ (undefined));
  /** @type {<T>(pending: Promise<Outcome<T>>) => Promise<T | undefined>} */
  const attempt = async (pending) => {
    const outcome = await pending;
    setProblem(outcome.ok ? undefined : outcome.problem);
    return outcome.ok ? outcome.value : undefined;
  };
  return { problem, attempt };
};

/** @template T @typedef {{ value: T | undefined, problem: Problem | undefined, again: () => void }} Loaded */

const RETRY_MS = 2_000;

/**
 * The state of a GET, retried while the service is silent. `value` is the last good one, also with a `problem`.
 * @template [T=any]
 * @param {string | undefined} path
 * @param {number} [everyMs]
 * @returns {Loaded<T>}
 */
export const useAsk = (path, everyMs) => {
  const [known, setKnown] = useState(
    /** @type {{ path?: string, value?: T | undefined, problem?: Problem }} */ ({}),
  );
  /** @type {(one: typeof known) => typeof known} */
  const currentOf = (one) => (one.path === path ? one : {});
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (path === undefined) return;
    const leaving = new AbortController();
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const run = async () => {
      /** @type {Outcome<T> | undefined} */
      const outcome = await ask(path, { signal: leaving.signal }).catch(() => undefined);
      if (outcome === undefined || leaving.signal.aborted) return;
      setKnown((before) => ({ path, value: currentOf(before).value, ...outcome }));
      const isAway = !outcome.ok && [0, 503].includes(outcome.problem.status);
      const waitMs = everyMs ?? (isAway ? RETRY_MS : undefined);
      if (waitMs !== undefined) timer = setTimeout(run, waitMs);
    };
    run();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [path, everyMs, round]);
  const again = useCallback(() => setRound((before) => before + 1), []);
  const { value, problem } = currentOf(known);
  return { value, problem, again };
};
