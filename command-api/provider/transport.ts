/**
 * One HTTP request to a provider, sent once. Only undici's own connect time-out tells "never
 * connected" (nothing was sent) from "no response" (it may have been).
 */
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import { annotate } from '../../shared/runtime/tracing.ts';
import { parseResponse } from './response-json.ts';

export type TransportRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  headers: Record<string, string>;
  body?: string | undefined;
  signal: AbortSignal;
  bytesMax: number;
};

/** `body` is the parsed JSON, undefined where it is none (response-json.ts). */
export type RawResponse = {
  status: number;
  headers: Dispatcher.ResponseData['headers'];
  body: unknown;
};

/** `sent` is false only when nothing can have reached the provider. */
export type NoResponse = {
  sent: boolean;
  reason: 'timeout' | 'oversized' | 'unreachable' | 'broken';
};

export type Transport = {
  /** Never throws. Follows no redirect and sends nothing a second time. */
  send(request: TransportRequest): Promise<RawResponse | NoResponse>;
  close(): Promise<void>;
};

class TooLarge extends Error {}

const readCapped = async (
  body: Dispatcher.ResponseData['body'],
  bytesMax: number,
): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop destroys the body and with it the connection.
    if (bytes > bytesMax) throw new TooLarge();
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
};

type ConnectFailure = { code?: string; syscall?: string; errors?: ConnectFailure[] };

/** An address with several IPs fails with one error for each. */
const neverConnected = (failure: ConnectFailure): boolean => {
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
 * undici's own connect time-out is up to a second late; it stays behind ours to give up the socket.
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

const noResponse = (error: unknown, aborted: boolean): NoResponse => {
  if (aborted) return { sent: true, reason: 'timeout' };
  if (error instanceof TooLarge) return { sent: true, reason: 'oversized' };
  if (neverConnected(error as ConnectFailure)) return { sent: false, reason: 'unreachable' };
  return { sent: true, reason: 'broken' };
};

export const openTransport = (origin: string, connectTimeoutMs: number): Transport => {
  const pool = new Pool(origin, {
    connect: connectWithin(connectTimeoutMs),
    // The call's own abort bounds all of it; these would only bound the gaps.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    send: async ({ method, path, headers, body, signal, bytesMax }) => {
      try {
        const response = await pool.request({ method, path, headers, body: body ?? null, signal });
        annotate({ 'http.response.status_code': response.statusCode });
        return {
          status: response.statusCode,
          headers: response.headers,
          body: parseResponse(await readCapped(response.body, bytesMax)),
        };
      } catch (error) {
        return noResponse(error, signal.aborted);
      }
    },
    close: () => pool.destroy(),
  };
};
