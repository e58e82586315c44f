/** Requests to the service with the reader's token, and what its rejections mean for the reader. */
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { currentSession } from './session.js';

/** @typedef {{ status: number, code: string, sentence: string, details: readonly string[], next: string }} Problem */
/**
 * @template T
 * @typedef {{ ok: true, value: T } | { ok: false, problem: Problem }} Outcome
 */

/** What the reader can do, by the status of a rejection. */
const NEXT = new Map([
  [0, 'The page asks again when the service responds.'],
  [401, 'Paste a new token; `npx payments console` prints an address with one.'],
  [403, 'Use a token with the scope that this page needs.'],
  [404, 'Check the id. A payment of another merchant looks the same as one that does not exist.'],
  [429, 'Wait a moment.'],
  [503, 'Wait a moment; `npx payments doctor` says what is the matter.'],
]);

/** @type {Problem} */
const UNREACHABLE = {
  status: 0,
  code: 'UNREACHABLE',
  sentence: 'The service does not respond.',
  details: [],
  next: NEXT.get(0) ?? '',
};

/**
 * @param {number} status
 * @param {{ error?: string, message?: string, details?: readonly string[] }} body the error body
 * @returns {Problem}
 */
export const problemBy = (status, body) => {
  const { error = 'UNKNOWN', message = `The service responded ${status}.`, details = [] } = body;
  return { status, code: error, sentence: message, details, next: NEXT.get(status) ?? '' };
};

/** @param {Response} response */
const problemOf = async (response) =>
  problemBy(response.status, await response.json().catch(() => ({})));

/**
 * A response of the service, ok or not. Throws TypeError where the service cannot be reached.
 * @param {string} path
 * @param {RequestInit & { headers?: Record<string, string> }} [init]
 */
const request = (path, init = {}) => {
  const token = currentSession()?.token;
  const headers = { ...init.headers, ...(token && { authorization: `Bearer ${token}` }) };
  return fetch(path, { ...init, headers, cache: 'no-store', redirect: 'error' });
};

/**
 * The JSON of a response. Never throws, but for an abort by `init.signal`.
 * @template T
 * @param {string} path
 * @param {RequestInit & { headers?: Record<string, string> }} [init]
 * @returns {Promise<Outcome<T>>}
 */
export const ask = async (path, init = {}) => {
  try {
    const response = await request(path, init);
    if (!response.ok) return { ok: false, problem: await problemOf(response) };
    return { ok: true, value: await response.json() };
  } catch (error) {
    if (init.signal?.aborted) throw error;
    return { ok: false, problem: UNREACHABLE };
  }
};

/**
 * A POST with JSON; see `ask`.
 * @template T
 * @param {string} path
 * @param {unknown} [body]
 * @returns {Promise<Outcome<T>>}
 */
export const send = (path, body) =>
  ask(path, { method: 'POST', ...(body !== undefined && { body: JSON.stringify(body) }) });

/**
 * The bytes of a response with its headers, for a file. Never throws.
 * @param {string} path
 * @param {string} accept
 * @returns {Promise<Outcome<{ bytes: Uint8Array<ArrayBuffer>, headers: Headers }>>}
 */
export const download = async (path, accept) => {
  try {
    const response = await request(path, { headers: { accept } });
    if (!response.ok) return { ok: false, problem: await problemOf(response) };
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { ok: true, value: { bytes, headers: response.headers } };
  } catch {
    return { ok: false, problem: UNREACHABLE };
  }
};

/** @typedef {{ event: string, id: string | undefined, data: string }} ServerSent */

/**
 * Reads server-sent events until the stream ends or `signal` is aborted. Resolves with the problem of
 * a rejection or of a lost connection; undefined where the stream ended by itself.
 * @param {string} path
 * @param {{ method?: string, headers?: Record<string, string>, signal: AbortSignal, onEvent: (event: ServerSent) => void }} options
 * @returns {Promise<Problem | undefined>}
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
 * Reads server-sent events as `follow` does, of a stream that ends with `result` or `failed`: without
 * either the connection was lost, also where the stream ended by itself, as at a stop of the service.
 * @param {string} path
 * @param {Parameters<typeof follow>[1]} options
 * @returns {Promise<Problem | undefined>}
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
