import { currentTraceparent } from '../../../shared/runtime/tracing.ts';
import type {
  LedgerPage,
  OperationQuestion,
  Provider,
  ProviderOperation,
  Unknown,
} from '../port.ts';
import { type NoResponse, openTransport } from '../transport.ts';
import { LEDGER_PAGE_MAX, ledgerEnd } from './ledger-end.ts';
import { BODY_BYTES_MAX } from './protocol.ts';
import { type RawResponse, readExecute, readFence, readLedger, readLookUp } from './responses.ts';

export type HttpProviderOptions = {
  url: string;
  token?: string | undefined;
  connectTimeoutMs: number;
  /** The whole time for one call, to the last byte of its response. */
  timeoutMs: number;
};

/** As long as card schemes keep an authorization. */
const AUTHORIZATION_MS_MAX = 7 * 86_400_000;

const numberIn = (operation: ProviderOperation): string | undefined => {
  const revealed = 'card' in operation ? operation.card.reveal() : undefined;
  return revealed !== undefined && 'number' in revealed ? revealed.number : undefined;
};

/** Undefined for a token: the protocol has none. */
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

export const httpProvider = (options: HttpProviderOptions): Provider => {
  const { timeoutMs } = options;
  const base = new URL(options.url);
  const prefix = `${base.pathname.replace(/\/+$/, '')}/operations`;
  const transport = openTransport(base.origin, options.connectTimeoutMs);
  const headers = {
    accept: 'application/json',
    ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
  };

  const call = async (
    method: 'PUT' | 'GET' | 'DELETE',
    path: string,
    body?: string,
  ): Promise<RawResponse | NoResponse> => {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), timeoutMs);
    const traceparent = currentTraceparent();
    const sent = {
      ...headers,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(traceparent !== undefined && { traceparent }),
    };
    try {
      return await transport.send({
        method,
        path: prefix + path,
        headers: sent,
        body,
        signal: abort.signal,
        bytesMax: BODY_BYTES_MAX,
      });
    } finally {
      clearTimeout(timer);
    }
  };
  const pathOf = ({ operationId }: Pick<OperationQuestion, 'operationId'>): string =>
    `/${encodeURIComponent(operationId)}`;

  const ledger: Provider['ledger'] = async (after, limit) => {
    const page = `?after=${after ?? 0}&limit=${Math.min(limit, LEDGER_PAGE_MAX)}`;
    const response = await call('GET', page);
    if ('sent' in response) throw new Error(`the provider's ledger: ${response.reason}`);
    return goingOn(after, readLedger(response));
  };

  return {
    describeToken: async () => ({ outcome: 'NOT_FOUND' }),
    execute: async (operation) => {
      const body = putBody(operation);
      if (body === undefined) return { outcome: 'NOT_SENT', reason: 'misconfigured' };
      const response = await call('PUT', pathOf(operation), body);
      if ('sent' in response) return response.sent ? unknownBy(response) : { outcome: 'NOT_SENT' };
      return readExecute(response, operation, numberIn(operation));
    },
    lookUp: async (question) => {
      const response = await call('GET', pathOf(question));
      return 'sent' in response ? unknownBy(response) : readLookUp(response, question);
    },
    fence: async (question) => {
      const response = await call('DELETE', pathOf(question));
      return 'sent' in response ? unknownBy(response) : readFence(response, question);
    },
    // The protocol says nothing of what comes later.
    laterResults: async () => ({ outcome: 'FOUND', results: [] }),
    paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
    onNotice: () => undefined,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    ledger,
    ledgerEnd: (after) => ledgerEnd(ledger, after),
    close: transport.close,
  };
};

/** Without it a ledger that repeats a page would be read for ever. */
const goingOn = (after: string | null, page: LedgerPage): LedgerPage => {
  if (page.next !== null && Number(page.next) <= Number(after ?? 0))
    throw new Error("the provider's ledger does not go on");
  return page;
};

const unknownBy = ({ reason }: NoResponse): Unknown => ({ outcome: 'UNKNOWN', reason });
