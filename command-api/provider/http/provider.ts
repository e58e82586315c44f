import type { z } from 'zod';
import { FAILURE_CODES, type FailureCode } from '../../../shared/payment/payment-events.ts';
import { currentTraceparent } from '../../../shared/runtime/tracing.ts';
import {
  AT_WORK,
  type Declined,
  type Fenced,
  type LedgerEntry,
  type LedgerPage,
  type LookedUp,
  MISMATCH,
  type OperationQuestion,
  type Provider,
  type ProviderOperation,
  type Unknown,
} from '../port.ts';
import { cleanCode, openTransport, type Response, type SentCard } from '../transport.ts';
import { LEDGER_PAGE_MAX, ledgerEnd } from './ledger-end.ts';
import { BODY_BYTES_MAX, ledgerBody, responseBody } from './protocol.ts';

type HttpProviderOptions = {
  url: string;
  token?: string | undefined;
  connectTimeoutMs: number;
  timeoutMs: number;
};

/** Card schemes keep an authorization for so long. */
const AUTHORIZATION_MS_MAX = 7 * 86_400_000;

const cardIn = (operation: ProviderOperation): SentCard | undefined =>
  'card' in operation ? operation.card.reveal() : undefined;

/** Undefined for a token: the protocol has none. */
const putBody = (operation: ProviderOperation): string | undefined => {
  const { kind, paymentId, amount, currency } = operation;
  const common = { kind, paymentId, amount, currency };
  if (!('card' in operation))
    return JSON.stringify({ ...common, authorizationId: operation.authorizationId });
  const revealed = operation.card.reveal();
  if ('token' in revealed) return undefined;
  const { number, holderName, expiryMonth, expiryYear, cvv, threeDSecure } = revealed;
  const card = { number, holderName, expiryMonth, expiryYear, cvv, threeDSecure };
  const { descriptor, merchantReference, metadata, authentication, initiatedBy } = operation;
  const { billing, consumer } = operation;
  const given = { descriptor, merchantReference, metadata, authentication, initiatedBy };
  return JSON.stringify({ ...common, card, ...given, billing, consumer });
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

  const call = (
    method: 'PUT' | 'GET' | 'DELETE',
    path: string,
    body?: string,
  ): Promise<Response> => {
    const traceparent = currentTraceparent();
    return transport.send({
      method,
      path: prefix + path,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(traceparent !== undefined && { traceparent }),
      },
      body,
      signal: AbortSignal.timeout(timeoutMs),
      bytesMax: BODY_BYTES_MAX,
    });
  };
  const pathOf = ({ operationId }: Pick<OperationQuestion, 'operationId'>): string =>
    `/${encodeURIComponent(operationId)}`;

  const ledger: Provider['ledger'] = async (after, limit) => {
    const query = `?after=${after ?? 0}&limit=${Math.min(limit, LEDGER_PAGE_MAX)}`;
    const page = readLedger(await call('GET', query));
    // Without this a ledger that repeats a page would be read for ever.
    if (page.next !== null && Number(page.next) <= Number(after ?? 0))
      throw new Error("the provider's ledger does not go on");
    return page;
  };

  return {
    describeToken: async () => ({ outcome: 'NOT_FOUND' }),
    execute: async (operation) => {
      const body = putBody(operation);
      if (body === undefined) return { outcome: 'NOT_SENT', reason: 'misconfigured' };
      const response = await call('PUT', pathOf(operation), body);
      if (response.lost?.sent === false) return { outcome: 'NOT_SENT' };
      if (isConflict(response, operation))
        return { outcome: 'NOT_SENT', byProvider: true, reason: 'fenced' };
      const said = readResponse(response, operation, cardIn(operation));
      return said.outcome === 'FENCED' ? MALFORMED : said;
    },
    lookUp: async (question) => {
      const response = await call('GET', pathOf(question));
      if (response.status === 404) return { outcome: 'NOT_FOUND' };
      const said = atWorkOr(response) ?? readResponse(response, question);
      return said.outcome === 'FENCED' ? MALFORMED : said;
    },
    fence: async (question) => {
      const response = await call('DELETE', pathOf(question));
      const said = atWorkOr(response) ?? readResponse(response, question);
      return said.outcome === 'ACTION_REQUIRED' ? MALFORMED : said;
    },
    // The protocol says nothing of what comes later.
    laterResults: async () => ({ outcome: 'FOUND', results: [] }),
    disputes: async () => [],
    endedAuthorizations: async () => ({ outcome: 'FOUND', paymentIds: [] }),
    paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
    onNotice: () => undefined,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    ledger,
    ledgerEnd: (after) => ledgerEnd(ledger, after),
    close: transport.close,
  };
};

const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });
const MALFORMED = unknown('malformed');

type Sent = Pick<OperationQuestion, 'operationId' | 'kind' | 'amount' | 'currency'>;

const isFailureCode = (code: string): code is FailureCode =>
  (FAILURE_CODES as readonly string[]).includes(code);

type Entry = z.infer<typeof ledgerBody>['operations'][number];

const declinedFrom = (
  body: Omit<Entry, 'sequence' | 'kind' | 'paymentId'>,
  card?: SentCard,
): Declined => {
  const { advice, networkDeclineCode, networkAdviceCode } = body;
  const own = cleanCode(body.providerFailureCode, card);
  const code = body.failureCode ?? '';
  const codes = isFailureCode(code)
    ? { failureCode: code, providerFailureCode: own }
    : {
        failureCode: 'UNKNOWN_DECLINE' as const,
        providerFailureCode: own ?? cleanCode(code, card),
      };
  return { outcome: 'DECLINED', ...codes, advice, networkDeclineCode, networkAdviceCode };
};

/** Anything but what a 200 says of this very operation is Unknown; only codes are passed on. */
const readResponse = (
  { status, body, lost }: Response,
  question: Sent,
  card?: SentCard,
): Exclude<LookedUp, { outcome: 'NOT_FOUND' }> | Fenced =>
  status === 200 ? readBody(body, question, card) : unknown(lost?.reason ?? 'status');

const readBody = (
  body: unknown,
  { operationId, kind, amount, currency }: Sent,
  card?: SentCard,
): ReturnType<typeof readResponse> => {
  const said = responseBody.safeParse(body).data;
  if (said === undefined) return MALFORMED;
  const isOfId = said.operationId === operationId;
  if (said.outcome === 'FENCED') return isOfId ? { outcome: 'FENCED' } : MALFORMED;
  if (!isOfId || said.amount !== amount || said.currency !== currency) return unknown(MISMATCH);
  if (said.outcome === 'ACTION_REQUIRED') {
    if (kind !== 'AUTHORIZE' && kind !== 'SALE') return MALFORMED;
    const expiresAt = new Date(said.expiresAt).toISOString();
    return { outcome: 'ACTION_REQUIRED', url: said.nextAction.url, expiresAt };
  }
  if (said.outcome === 'DECLINED') return declinedFrom(said, card);
  const providerReference = cleanCode(said.providerReference, card);
  const { authorizationExpiresAt } = said;
  return { outcome: 'APPROVED', providerReference, authorizationExpiresAt };
};

/** 409 with the fence of this very operation. */
const isConflict = ({ status, body }: Response, question: Sent): boolean =>
  status === 409 && readBody(body, question).outcome === 'FENCED';

const atWorkOr = ({ status }: Response): Unknown | undefined =>
  status === 202 ? unknown(AT_WORK) : undefined;

const entryFrom = (body: Entry): LedgerEntry => {
  const { sequence, operationId, kind, paymentId, outcome, amount, currency } = body;
  const cursor = String(sequence);
  const entry = { cursor, operationId, kind, paymentId, outcome, amount, currency };
  const providerReference = cleanCode(body.providerReference) ?? '';
  return outcome === 'APPROVED'
    ? { ...entry, providerReference }
    : { ...entry, ...declinedFrom(body), outcome, providerReference };
};

const readLedger = ({ status, body, lost }: Response): LedgerPage => {
  const read = ledgerBody.safeParse(body);
  if (status !== 200 || !read.success)
    throw new Error(`the provider's ledger: ${lost?.reason ?? `status ${status}`}`);
  const { operations, next } = read.data;
  return { entries: operations.map(entryFrom), next: next === null ? null : String(next) };
};
