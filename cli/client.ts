/** The verbs' client: PAYMENTS_URL, else HOST and PORT; PAYMENTS_TOKEN, else one signed here. */
import { userInfo } from 'node:os';
import { REJECTION_HEADER } from '../shared/http/errors.ts';
import { pause } from '../shared/runtime/back-off.ts';
import { orElse } from '../shared/runtime/error-text.ts';
import { jsonFieldsOf } from '../shared/runtime/json.ts';
import { CommandFailed, ServiceUnreachable } from './output.ts';
import { makeToken, readSettings } from './settings.ts';

/** Of a signed token: `scope`, by default a merchant's; `merchant`, by default m_demo or `*`. */
type ClientOptions = { scope?: string | undefined; merchant?: string | undefined };

/** Returns every response, errors too. Throws ServiceUnreachable without one. */
export type Client = {
  url: string;
  /** Why the log of a stopped folder is not the one that was sealed last. */
  misfit?: string | undefined;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Response>;
  send(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
};

const TTL_SECONDS = 300;

const ANY_ADDRESS: Record<string, string> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

const localUrl = (): string => {
  const { host: listens, port } = readSettings();
  const host = ANY_ADDRESS[listens] ?? listens;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
};

const serviceUrl = (): string => {
  const given = process.env.PAYMENTS_URL?.trim();
  if (given === undefined || given === '') return localUrl();
  if (!/^https?:\/\//i.test(given) || !URL.canParse(given))
    throw new CommandFailed('PAYMENTS_URL must be an http or https address');
  return given.replace(/\/+$/, '');
};

/** PAYMENTS_TOKEN, if set. Throws CommandFailed if a merchant is named too: the token decides. */
export const givenToken = (merchant: string | undefined): string | undefined => {
  const given = process.env.PAYMENTS_TOKEN?.trim();
  if (given === undefined || given === '') return undefined;
  if (merchant === undefined) return given;
  throw new CommandFailed(
    'PAYMENTS_TOKEN is set, so --merchant has no effect; leave it out, or unset PAYMENTS_TOKEN and a token of that merchant is signed',
    2,
  );
};

/** Gives tokens with half their life left, because a verb that follows the log outlives one. */
const tokens = ({ scope, merchant }: ClientOptions): (() => Promise<string>) => {
  const given = givenToken(merchant);
  if (given !== undefined) return async () => given;
  let made: { token: string; atMs: number } | undefined;
  return async () => {
    if (made !== undefined && Date.now() - made.atMs < (TTL_SECONDS * 1000) / 2) return made.token;
    const token = await makeToken(readSettings(), {
      merchant: merchant ?? (/\b(audit|ops):/.test(scope ?? '') ? '*' : 'm_demo'),
      subject: subject(),
      scope,
      ttlSeconds: TTL_SECONDS,
    });
    made = { token, atMs: Date.now() };
    return token;
  };
};

/** The actor in the audit trail; in a container the user may have no name. */
const subject = (): string => orElse('cli', () => `cli:${userInfo().username}`.slice(0, 255));

const codeOf = (error: unknown): string => {
  const { cause } = error as Error;
  return String(Object(cause).code ?? (error as Error).message);
};

const LOOK_EVERY_MS = 10_000;
const LOOK_MS_MAX = 5_000;

/** While a response is waited for: stops the wait once the service says nothing to anyone. */
const watchSilence = (url: string, silence: AbortController): NodeJS.Timeout =>
  setInterval(() => {
    fetch(`${url}/health/live`, { signal: AbortSignal.timeout(LOOK_MS_MAX) }).catch(() =>
      silence.abort(new Error('it took the connection and does not respond')),
    );
  }, LOOK_EVERY_MS);

/** Sends nothing yet. Throws CommandFailed where a setting is wrong, and as givenToken. */
export const openClient = async (options: ClientOptions = {}): Promise<Client> => {
  const url = serviceUrl();
  const tokenNow = tokens(options);
  const send: Client['send'] = async (method, path, body, headers) => {
    const authorization = `Bearer ${await tokenNow()}`;
    const json = body !== undefined && { 'content-type': 'application/json' };
    const silence = new AbortController();
    const watch = watchSilence(url, silence);
    try {
      return await fetch(url + path, {
        method,
        headers: { ...json, ...headers, authorization },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        redirect: 'error',
        signal: silence.signal,
      });
    } catch (error) {
      const code = codeOf(error);
      const why = code === 'ECONNREFUSED' ? '' : ` (${code})`;
      throw new ServiceUnreachable(
        `no service answers at ${url}${why}; start it with npm start, or set PAYMENTS_URL`,
      );
    } finally {
      clearInterval(watch);
    }
  };
  return {
    url,
    send,
    get: (path, headers) => send('GET', path, undefined, headers),
    post: (path, body, headers) => send('POST', path, body, headers),
  };
};

const NEXT: Record<string, string> = {
  PAYMENT_NOT_FOUND: 'look for it: payments find',
  INVALID_REQUEST: 'see the options: the same command with --help',
  SERVICE_UNAVAILABLE: 'the reason is at /health/ready of the service, or: payments doctor',
};

const nextToken = (error: 'FORBIDDEN' | 'UNAUTHORIZED'): string => {
  const { tokens, dataDir } = readSettings();
  if (tokens.keys.kind.startsWith('jwks'))
    return 'set PAYMENTS_TOKEN to such a token of the issuer';
  if (error === 'FORBIDDEN')
    return 'set PAYMENTS_TOKEN to such a token: payments token --merchant "*" --scope … --subject <your name>';
  if (givenToken(undefined) !== undefined)
    return 'set PAYMENTS_TOKEN to a valid token, or unset it, and one is signed with the settings';
  const key = tokens.keys.kind === 'secret' ? 'JWT_SECRET' : `the key in ${dataDir}`;
  return `the token was signed with ${key}: set DATA_DIR, or JWT_SECRET, as the service has it, or PAYMENTS_TOKEN to a valid token`;
};

export const rejectionLine = (status: number, body: string): string => {
  const { error, message, details } = jsonFieldsOf(body);
  if (typeof error !== 'string')
    return `the service responded ${status} without an error body of its own`;
  const list = Array.isArray(details) && details.length > 0 ? ` (${details.join('; ')})` : '';
  // Details give the reason, which /health/ready may not show.
  const hasReason = error === 'SERVICE_UNAVAILABLE' && list !== '';
  const next = error === 'UNAUTHORIZED' || error === 'FORBIDDEN' ? nextToken(error) : NEXT[error];
  const last = hasReason || next === undefined ? '' : `; ${next}`;
  return `${error}: ${String(message).replace(/\.$/, '')}${list}${last}`;
};

export const bodyText = async (response: Response): Promise<string> => {
  try {
    return await response.text();
  } catch (error) {
    throw new CommandFailed(
      `the connection was lost before the end of the response (${codeOf(error)}); a command that changes something may have been carried out`,
    );
  }
};

/** A successful response. Throws CommandFailed; a 400 means wrong usage of the verb, exit code 2. */
export const orFail = async (response: Response): Promise<Response> => {
  if (response.ok) return response;
  const line = rejectionLine(response.status, await bodyText(response));
  throw new CommandFailed(line, response.status === 400 ? 2 : 1);
};

/** The JSON of a successful response. Throws CommandFailed as orFail, and for a body that is no JSON. */
export const jsonOf = async <T>(response: Promise<Response>): Promise<T> => {
  const text = await bodyText(await orFail(await response));
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new CommandFailed('the response is no JSON; is PAYMENTS_URL the address of the service?');
  }
};

export const readOps = async <T>(path: string): Promise<T> =>
  jsonOf<T>((await openClient({ scope: 'ops:admin' })).get(path));

/** Longer than another projector takes to take over. */
const STANDS_BY_MS_MAX = 12_000;
const STANDS_BY_MS = 250;

/** Posts until the projector that follows the log responds: two share the address of a gateway. */
export const postToFollowing = async (
  path: string,
  headers: Record<string, string> = {},
  next: (reason: string | null) => string = () => '',
): Promise<Response> => {
  const client = await openClient({ scope: 'ops:admin' });
  const untilMs = performance.now() + STANDS_BY_MS_MAX;
  for (;;) {
    const response = await client.post(path, undefined, headers);
    if (response.ok) return response;
    const text = await bodyText(response);
    const reason = response.headers.get(REJECTION_HEADER);
    if (reason !== 'STANDING_BY' || performance.now() > untilMs)
      throw new CommandFailed(rejectionLine(response.status, text) + next(reason));
    await pause(STANDS_BY_MS);
  }
};

export const postOps = async <T>(path: string): Promise<T> => jsonOf<T>(postToFollowing(path));
