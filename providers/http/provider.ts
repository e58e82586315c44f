import type { z } from 'zod';
import { CARD_BRANDS } from '../../shared/payment/card.ts';
import { FAILURE_CODES, type FailureCode } from '../../shared/payment/fields.ts';
import { currentTraceparent } from '../../shared/runtime/tracing.ts';
import {
  AT_WORK,
  AUTHORIZATION_MS_MAX,
  type Declined,
  type Fenced,
  type LedgerEntry,
  type LedgerPage,
  type LookedUp,
  MISMATCH,
  type OperationQuestion,
  type Provider,
  type ProviderOperation,
  type TokenDescription,
  unknown,
} from '../port.ts';
import { cleanCode, openTransport, type Response, type SentCard } from '../transport.ts';
import { LEDGER_PAGE_MAX, ledgerEnd } from './ledger-end.ts';
import { BODY_BYTES_MAX, ledgerBody, responseBody, tokenBody } from './protocol.ts';

type HttpProviderOptions = {
  url: string;
  token?: string | undefined;
  connectTimeoutMs: number;
  timeoutMs: number;
};

const cardIn = (operation: ProviderOperation): SentCard | undefined =>
  'card' in operation ? operation.card.reveal() : undefined;

const cardBody = (card: SentCard) => {
  const { holderName, threeDSecure } = card;
  if ('token' in card) return { token: card.token, holderName, threeDSecure };
  const { number, expiryMonth, expiryYear, cvv } = card;
  return { number, holderName, expiryMonth, expiryYear, cvv, threeDSecure };
};

const putBody = (operation: ProviderOperation): string => {
  const { kind, paymentId, amount, currency } = operation;
  const common = { kind, paymentId, amount, currency };
  if (!('card' in operation))
    return JSON.stringify({ ...common, authorizationId: operation.authorizationId });
  const card = cardBody(operation.card.reveal());
  const { descriptor, merchantReference, metadata, authentication, initiatedBy } = operation;
  const { billing, consumer } = operation;
  const given = { descriptor, merchantReference, metadata, authentication, initiatedBy };
  return JSON.stringify({ ...common, card, ...given, billing, consumer });
};

export const httpProvider = (options: HttpProviderOptions): Provider => {
  const { timeoutMs } = options;
  const transport = openTransport(options.url, options.connectTimeoutMs, BODY_BYTES_MAX);
  const headers = {
    accept: 'application/json',
    ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
  };

  const call = (method: 'PUT' | 'GET' | 'DELETE' | 'POST', path: string, body?: string) => {
    const traceparent = currentTraceparent();
    return transport.send({
      method,
      path,
      headers: {
        ...headers,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(traceparent !== undefined && { traceparent }),
      },
      body,
      signal: AbortSignal.timeout(timeoutMs),
    });
  };
  const pathOf = ({ operationId }: Pick<OperationQuestion, 'operationId'>): string =>
    `/operations/${encodeURIComponent(operationId)}`;

  const ledger: Provider['ledger'] = async (after, limit, since) => {
    const from = since === undefined ? '' : `&since=${since}`;
    const path = `/operations?after=${after ?? 0}&limit=${Math.min(limit, LEDGER_PAGE_MAX)}${from}`;
    const page = readLedger(await call('GET', path), since);
    // Without this a ledger that repeats a page would be read for ever.
    if (page.next !== null && Number(page.next) <= Number(after ?? 0))
      throw new Error("the provider's ledger does not go on");
    return page;
  };

  return {
    describeToken: async (token, merchantId) =>
      readDescription(await call('POST', '/tokens', JSON.stringify({ token, merchantId }))),
    execute: async (operation) => {
      const response = await call('PUT', pathOf(operation), putBody(operation));
      if (response.lost?.sent === false) return { outcome: 'NOT_SENT' };
      if (response.status === 409 && readBody(response.body, operation).outcome === 'FENCED')
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
    madeElsewhere: async () => ({ outcome: 'FOUND', made: [] }),
    paymentOf: async () => ({ outcome: 'NOT_FOUND' }),
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    ledger,
    ledgerEnd: (after) => ledgerEnd(ledger, after),
    close: transport.close,
  };
};

const MALFORMED = unknown('malformed');

type Sent = Pick<OperationQuestion, 'operationId' | 'kind' | 'amount' | 'currency'>;

const isFailureCode = (code: string): code is FailureCode =>
  (FAILURE_CODES as readonly string[]).includes(code);

type Entry = z.infer<typeof ledgerBody>['operations'][number];

type Outcome = Omit<Entry, 'sequence' | 'kind' | 'paymentId'>;

const declinedFrom = (body: Outcome, card?: SentCard): Declined => {
  const { advice, networkDeclineCode, networkAdviceCode } = body;
  const own = cleanCode(body.providerFailureCode, card);
  const code = body.failureCode ?? '';
  const failureCode = isFailureCode(code) ? code : 'UNKNOWN_DECLINE';
  const other = failureCode === code ? undefined : cleanCode(code, card);
  const codes = { failureCode, providerFailureCode: own ?? other } as const;
  return { outcome: 'DECLINED', ...codes, advice, networkDeclineCode, networkAdviceCode };
};

/** A provider without tokens answers 501, or 404 as to any token. */
const readDescription = ({ status, body, lost }: Response): TokenDescription => {
  if (status === 404 || status === 501) return { outcome: 'NOT_FOUND' };
  if (status !== 200) return unknown(lost?.reason ?? 'status');
  const card = tokenBody.safeParse(body).data;
  if (card === undefined) return MALFORMED;
  const { last4, expiryMonth, expiryYear, bin } = card;
  const brand = CARD_BRANDS.find((one) => one === card.brand);
  return { outcome: 'DESCRIBED', last4, expiryMonth, expiryYear, brand, bin: bin ?? undefined };
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

const atWorkOr = ({ status }: Response) => (status === 202 ? unknown(AT_WORK) : undefined);

const entryFrom = (body: Entry): LedgerEntry => {
  const { sequence, operationId, kind, paymentId, outcome, amount, currency } = body;
  const cursor = String(sequence);
  const entry = { cursor, operationId, kind, paymentId, outcome, amount, currency };
  const providerReference = cleanCode(body.providerReference) ?? '';
  return outcome === 'APPROVED'
    ? { ...entry, providerReference }
    : { ...entry, ...declinedFrom(body), outcome, providerReference };
};

const readLedger = ({ status, body, lost }: Response, since: string | undefined): LedgerPage => {
  const read = ledgerBody.safeParse(body);
  if (status !== 200 || !read.success)
    throw new Error(`the provider's ledger: ${lost?.reason ?? `status ${status}`}`);
  const { operations, next, since: said } = read.data;
  if (said !== undefined && Date.parse(said) !== Date.parse(since ?? ''))
    throw new Error("the provider's ledger: it begins at another time than was asked for");
  return {
    entries: operations.map(entryFrom),
    next: next === null ? null : String(next),
    since: said && since,
  };
};
