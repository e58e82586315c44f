/** Sends each request once. Only undici's own connect time-out tells "nothing was sent" from "no response". */
import { buildConnector, type Dispatcher, errors, Pool } from 'undici';
import type { CardInput, TokenInput } from '../shared/payment/card.ts';
import { TWELVE_DIGITS } from '../shared/payment/fields.ts';
import { digitsHoldCardNumber, holdsKnownCard } from '../shared/runtime/card-numbers.ts';
import { parseText, textOf } from '../shared/runtime/json.ts';
import { annotate } from '../shared/runtime/tracing.ts';

type TransportRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  path: string;
  headers: Record<string, string>;
  body?: string | undefined;
  signal: AbortSignal;
};

export type Response = {
  /** 0 where there was none: `lost` says why. */
  status: number;
  headers: Dispatcher.ResponseData['headers'];
  body: unknown;
  lost?: Lost;
};

/** `sent` is false only when nothing can have reached the provider. `paced`: its turn was too far away. */
type Lost = {
  sent: boolean;
  reason: 'timeout' | 'oversized' | 'unreachable' | 'broken' | 'paced';
};

export const lostBy = (reason: Lost['reason'], sent = true): Response => ({
  status: 0,
  headers: {},
  body: undefined,
  lost: { sent, reason },
});

/**
 * Its amounts decide what is recorded, so no byte, number or repeated key is guessed (provider.md):
 * undefined for no UTF-8, no JSON or a key twice. A fraction is Infinity, which no schema takes.
 */
const parseResponse = (bytes: Buffer): unknown => {
  const json = parseText(textOf(bytes));
  return json.ok && json.repeated === undefined ? json.value : undefined;
};

type ConnectFailure = { code?: string; syscall?: string; errors?: ConnectFailure[] };

/** An address with several IPs fails with one error for each. */
const neverConnected = ({ errors: all = [], code, syscall = '' }: ConnectFailure): boolean => {
  if (all.length > 0) return all.every(neverConnected);
  return code === 'UND_ERR_CONNECT_TIMEOUT' || ['connect', 'getaddrinfo'].includes(syscall);
};

/** undici's own is up to a second late; it stays behind ours to give up the socket. */
const connectWithin = (timeoutMs: number): buildConnector.connector => {
  // Calls that share a connection of HTTP/2 would not tell which of them was sent.
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false });
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

const noResponse = (error: unknown, aborted: boolean): Response => {
  if (aborted) return lostBy('timeout');
  if (error instanceof errors.ResponseExceededMaxSizeError) return lostBy('oversized');
  return neverConnected(error as ConnectFailure) ? lostBy('unreachable', false) : lostBy('broken');
};

/** Paths lie below that of `url`. A response of more than `bytesMax` is lost as `oversized`. */
export const openTransport = (url: string, connectTimeoutMs: number, bytesMax: number) => {
  const { origin, pathname } = new URL(url);
  const prefix = pathname.replace(/\/+$/, '');
  const pool = new Pool(origin, {
    connect: connectWithin(connectTimeoutMs),
    maxResponseSize: bytesMax,
    // The call's own abort bounds all of it; these would only bound the gaps.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return {
    /** Never throws. Follows no redirect and sends nothing a second time. */
    send: async (request: TransportRequest): Promise<Response> => {
      const { method, headers, body = null, signal } = request;
      const path = prefix + request.path;
      try {
        const response = await pool.request({ method, path, headers, body, signal });
        annotate({ 'http.response.status_code': response.statusCode });
        return {
          status: response.statusCode,
          headers: response.headers,
          body: parseResponse(Buffer.from(await response.body.bytes())),
        };
      } catch (error) {
        return noResponse(error, signal.aborted);
      }
    },
    close: () => pool.destroy(),
  };
};

export type SentCard = CardInput | TokenInput;

const SEARCHED_MAX = 1000;

const plain = (text: string): string => text.slice(0, SEARCHED_MAX).replace(/[^A-Za-z0-9_.-]/g, '');

/**
 * A provider's own code as it may be stored, logged and shown. Undefined where it may hold a card
 * number: 12 digits in a row, a known brand's in blocks, this call's however split, or its cryptogram.
 */
export const cleanCode = (code: string | null | undefined, card?: SentCard): string | undefined => {
  const kept = plain(code ?? '');
  const number = card && 'number' in card ? card.number : undefined;
  const holdsNumber = number !== undefined && digitsHoldCardNumber(kept, number);
  const cryptogram = card?.threeDSecure?.cryptogram;
  const holdsCryptogram = cryptogram !== undefined && kept.includes(plain(cryptogram));
  const holdsOther = TWELVE_DIGITS.test(kept) || holdsKnownCard(kept);
  const isSafe = kept !== '' && !holdsNumber && !holdsCryptogram && !holdsOther;
  return isSafe ? kept.slice(0, 64) : undefined;
};
