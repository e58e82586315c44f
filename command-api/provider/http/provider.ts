/**
 * A provider in another process that speaks provider.md. undici itself rather than fetch, because
 * only its own connect time-out tells "never connected" (NotSent) from "no answer" (Unknown).
 */
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import type {
  LedgerPage,
  OperationQuestion,
  Provider,
  ProviderOperation,
  Unknown,
} from '../port.ts';
import { LEDGER_PAGE_MAX, ledgerEnd } from './ledger-end.ts';
import { BODY_BYTES_MAX } from './protocol.ts';
import { type RawResponse, readExecute, readFence, readLedger, readLookUp } from './responses.ts';

export type HttpProviderOptions = {
  /** Base address; a path in it is kept. That it is https is the settings' to check. */
  url: string;
  /** Sent as a bearer token when given. */
  token?: string | undefined;
  connectTimeoutMs: number;
  /** The whole time for one call, its answer's last byte included. */
  timeoutMs: number;
};

class TooLarge extends Error {}

const readCapped = async (body: Dispatcher.ResponseData['body']): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop destroys the body and with it the connection.
    // seeded bug: response-size
    if (bytes > BODY_BYTES_MAX) throw new TooLarge();
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

type Failure = { code?: string; syscall?: string; errors?: Failure[] };

/**
 * True when no connection was ever made: refused, name not found, no connection in time. An
 * address with several IPs fails with one error for each.
 */
const neverConnected = (failure: Failure): boolean => {
  if (failure.errors !== undefined && failure.errors.length > 0) {
    return failure.errors.every(neverConnected);
  }
  return (
    failure.code === 'UND_ERR_CONNECT_TIMEOUT' ||
    failure.syscall === 'connect' ||
    failure.syscall === 'getaddrinfo'
  );
};

/**
 * undici's own connect time-out comes up to a second late: its clock ticks twice a second. That one
 * stays behind ours, to give up the socket.
 */
const connectWithin = (timeoutMs: number): buildConnector.connector => {
  const connect = buildConnector({ timeout: timeoutMs });
  return (target, done) => {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      done(new errors.ConnectTimeoutError(), null);
    }, timeoutMs);
    connect(target, (...result) => {
      clearTimeout(timer);
      if (late) result[1]?.destroy();
      else done(...result);
    });
  };
};

/** The card number that a call carries, if any; the protocol has no tokens. */
const numberIn = (operation: ProviderOperation): string | undefined => {
  const revealed = 'card' in operation ? operation.card.reveal() : undefined;
  return revealed !== undefined && 'number' in revealed ? revealed.number : undefined;
};

/** Undefined for an operation that the protocol has no words for: one with a token. */
const putBody = (operation: ProviderOperation): string | undefined => {
  const { kind, paymentId, amount, currency } = operation;
  const common = { kind, paymentId, amount, currency };
  if (!('card' in operation)) {
    return JSON.stringify({ ...common, authorizationId: operation.authorizationId });
  }
  const revealed = operation.card.reveal();
  if ('token' in revealed) return undefined;
  const { number, holderName, expiryMonth, expiryYear, cvv } = revealed;
  const card = { number, holderName, expiryMonth, expiryYear, cvv };
  return JSON.stringify({ ...common, card, descriptor: operation.descriptor });
};

/** Opens the client; nothing is connected yet. Throws only when `url` is no address. */
export const httpProvider = (options: HttpProviderOptions): Provider => {
  const { timeoutMs } = options;
  const base = new URL(options.url);
  const prefix = `${base.pathname.replace(/\/+$/, '')}/operations`;
  const pool = new Pool(base.origin, {
    connect: connectWithin(options.connectTimeoutMs),
    // The call's own abort bounds all of it; these would only bound the gaps.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const headers = {
    accept: 'application/json',
    ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
  };

  const send = async (
    method: 'PUT' | 'GET' | 'DELETE',
    path: string,
    signal: AbortSignal,
    body: string | null,
  ): Promise<RawResponse> => {
    const sent = body === null ? headers : { ...headers, 'content-type': 'application/json' };
    // seeded bug: no-redirects
    const response = await pool.request({ method, path, headers: sent, body, signal });
    return { status: response.statusCode, body: parseJson(await readCapped(response.body)) };
  };
  const call = async (
    method: 'PUT' | 'GET' | 'DELETE',
    path: string,
    body: string | null = null,
  ): Promise<RawResponse | NoResponse> => {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), timeoutMs);
    try {
      return await send(method, prefix + path, abort.signal, body);
    } catch (error) {
      return noResponse(error, abort.signal.aborted);
    } finally {
      clearTimeout(timer);
    }
  };
  const pathOf = ({ operationId }: Pick<OperationQuestion, 'operationId'>): string =>
    `/${encodeURIComponent(operationId)}`;

  const ledger: Provider['ledger'] = async (after, limit) => {
    const page = `?after=${after ?? 0}&limit=${Math.min(limit, LEDGER_PAGE_MAX)}`;
    const response = await call('GET', page);
    if ('sent' in response) throw new Error(`the provider's ledger: ${response.unknown.reason}`);
    return goingOn(after, readLedger(response));
  };

  return {
    describeToken: async () => ({ outcome: 'NOT_FOUND' }),
    execute: async (operation) => {
      const body = putBody(operation);
      if (body === undefined) return { outcome: 'NOT_SENT', reason: 'misconfigured' };
      const response = await call('PUT', pathOf(operation), body);
      if ('sent' in response) return response.sent ? response.unknown : { outcome: 'NOT_SENT' };
      return readExecute(response, operation, numberIn(operation));
    },
    lookUp: async (question) => {
      const response = await call('GET', pathOf(question));
      return 'sent' in response ? response.unknown : readLookUp(response, question);
    },
    fence: async (question) => {
      const response = await call('DELETE', pathOf(question));
      return 'sent' in response ? response.unknown : readFence(response, question);
    },
    ledger,
    ledgerEnd: (after) => ledgerEnd(ledger, after),
    close: () => pool.destroy(),
  };
};

/** Throws where the next page is not a later one: the ledger would be read for ever. */
const goingOn = (after: string | null, page: LedgerPage): LedgerPage => {
  if (page.next !== null && Number(page.next) <= Number(after ?? 0))
    throw new Error("the provider's ledger does not go on");
  return page;
};

/** No whole answer came. `sent` is false only when nothing can have reached the provider. */
type NoResponse = { sent: boolean; unknown: Unknown };

const noResponse = (error: unknown, aborted: boolean): NoResponse => {
  const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });
  // seeded bug: time-out-was-sent
  if (aborted) return { sent: true, unknown: unknown('timeout') };
  if (error instanceof TooLarge) return { sent: true, unknown: unknown('oversized') };
  if (neverConnected(error as Failure)) return { sent: false, unknown: unknown('unreachable') };
  return { sent: true, unknown: unknown('broken') };
};
