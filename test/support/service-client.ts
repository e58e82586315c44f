/** Requests to a service at an address, whichever way it was opened, and what its bodies hold. */
import { makeToken } from '../../cli/settings.ts';
import { loadConfig } from '../../shared/runtime/load-config.ts';
import { expectDescribed } from './once/api-description.ts';
import { HANGS_MS } from './time-bounds.ts';

type Failure = { failureCode: string; providerFailureCode?: string };
type Transaction = { id: string; type: string; amount: number; result: string; failure?: Failure };

/** The fields of the contract's bodies that tests look at; which are there depends on the answer. */
export type Body = {
  paymentId: string;
  status: string;
  amount: number;
  capturedAmount: number;
  refundedAmount: number;
  refundableAmount: number;
  transactions: Transaction[];
  failure: Failure;
  error: string;
  details: string[];
  [field: string]: unknown;
};

export type CommandResponse = {
  status: number;
  headers: Headers;
  /** The body as it came. */
  text: string;
  /** The body read as JSON; empty when it is none. */
  json: Body;
};

export type Client = ReturnType<typeof clientOf>;

/** A figure of a process's /metrics, whatever its labels; NaN where it has none of that name. */
export const metricOf = async ({ url }: { url: string }, name: string): Promise<number> => {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(new RegExp(`^${name}(?:{[^}]*})? (\\S+)$`, 'm').exec(text)?.[1] ?? 'NaN');
};

/** How many payments of a service are unresolved. */
export const unresolvedIn = (service: { url: string }): Promise<number> =>
  metricOf(service, 'payments_unresolved');

/** True when the service at the address says that it is ready. */
export const isReady = async (url: string): Promise<boolean> => {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(2000) });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
};

const asBody = (body: unknown): string | undefined =>
  typeof body === 'string' || body === undefined ? body : JSON.stringify(body);

/** Empty where the text is no JSON. */
export const parsed = (text: string): Body => {
  try {
    return JSON.parse(text);
  } catch {
    return {} as Body;
  }
};

/** Requests to a service at an address, by `own` unless a header has another token. */
export const requestsAt = (url: string, own: () => Promise<string>) => {
  const send = async (path: string, init: RequestInit): Promise<CommandResponse> => {
    const response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(HANGS_MS) });
    const text = await response.text();
    const { status, headers } = response;
    const { pathname } = new URL(url + path);
    const about = { method: init.method ?? 'GET', path: pathname, status, text };
    expectDescribed({ ...about, headers: Object.fromEntries(headers) });
    return { status, headers, text, json: parsed(text) };
  };
  const authorized = async (headers: Record<string, string>) =>
    headers.authorization === undefined
      ? { ...headers, authorization: `Bearer ${await own()}` }
      : headers;
  return {
    send,
    /** POST as JSON; a text or undefined is sent as it is. */
    post: async (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      send(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...(await authorized(headers)) },
        body: asBody(body) ?? null,
      }),
    get: async (path: string, headers: Record<string, string> = {}) =>
      send(path, { headers: await authorized(headers) }),
  };
};

/** Signed as `payments token` signs it, with the settings of the service. */
const tokenOf = (
  dataDir: string,
  env: NodeJS.ProcessEnv | undefined,
  merchant: string,
  scope: string | undefined,
): Promise<string> => {
  const read = loadConfig({ ...env, DATA_DIR: dataDir });
  if (!read.ok) throw new Error(read.problems.join('; '));
  return makeToken(read.config, { merchant, scope, ttlSeconds: 3600 });
};

/** A client with tokens of a service that listens at `url` over a data folder, with these settings. */
export const clientOf = (
  { url, dataDir }: { url: string; dataDir: string },
  env: NodeJS.ProcessEnv | undefined,
) => {
  const tokens = new Map<string, Promise<string>>();
  const token = (merchant = 'm_demo', scope?: string): Promise<string> => {
    const name = `${merchant} ${scope}`;
    const made = tokens.get(name) ?? tokenOf(dataDir, env, merchant, scope);
    tokens.set(name, made);
    return made;
  };
  return {
    /** A token as the command line makes it; kept per merchant and scope. */
    token,
    ...requestsAt(url, token),
  };
};
