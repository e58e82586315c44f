import { FAILURE_CODES, type FailureCode } from '../../../shared/payment/payment-events.ts';
import { currentTraceparent } from '../../../shared/runtime/tracing.ts';
import {
  type ActionRequired,
  type Approved,
  AT_WORK,
  type Declined,
  type Fenced,
  type LedgerEntry,
  type LedgerPage,
  MISMATCH,
  type NotFound,
  type OperationQuestion,
  type Provider,
  type ProviderOperation,
  type ProviderOutcome,
  type Unknown,
} from '../port.ts';
import {
  cleanCode,
  type NoResponse,
  openTransport,
  type RawResponse,
  type SentCard,
} from '../transport.ts';
import { LEDGER_PAGE_MAX, ledgerEnd } from './ledger-end.ts';
import {
  actionBody,
  BODY_BYTES_MAX,
  fencedBody,
  ledgerBody,
  type OutcomeBody,
  outcomeBody,
} from './protocol.ts';

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

const isAsking = (operation: ProviderOperation): boolean =>
  'card' in operation && operation.authentication !== undefined;

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
      if ('sent' in response)
        return response.sent ? unknown(response.reason) : { outcome: 'NOT_SENT' };
      const said = readExecute(response, operation, cardIn(operation));
      // A merchant who did not ask cannot send the shopper anywhere.
      return said.outcome === 'ACTION_REQUIRED' && !isAsking(operation)
        ? unknown('malformed')
        : said;
    },
    lookUp: async (question) => {
      const response = await call('GET', pathOf(question));
      return 'sent' in response ? unknown(response.reason) : readLookUp(response, question);
    },
    fence: async (question) => {
      const response = await call('DELETE', pathOf(question));
      return 'sent' in response ? unknown(response.reason) : readFence(response, question);
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

/** Without it a ledger that repeats a page would be read for ever. */
const goingOn = (after: string | null, page: LedgerPage): LedgerPage => {
  if (page.next !== null && Number(page.next) <= Number(after ?? 0))
    throw new Error("the provider's ledger does not go on");
  return page;
};

const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });

type Sent = Pick<OperationQuestion, 'operationId' | 'kind' | 'amount' | 'currency'>;

const isFailureCode = (code: string): code is FailureCode =>
  (FAILURE_CODES as readonly string[]).includes(code);

const declinedFrom = (body: OutcomeBody, card: SentCard | undefined): Declined => {
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

type Money = Pick<Sent, 'operationId' | 'amount' | 'currency'>;

const isAbout = (said: Money, { operationId, amount, currency }: Sent): boolean =>
  said.operationId === operationId && said.amount === amount && said.currency === currency;

/** An outcome, or that the shopper is needed for it. */
const readOrWait = (
  body: unknown,
  question: Sent,
  card?: SentCard,
): Approved | Declined | ActionRequired | Unknown => {
  const read = actionBody.safeParse(body);
  const isCreate = question.kind === 'AUTHORIZE' || question.kind === 'SALE';
  if (!read.success || !isCreate) return readOutcome(body, question, card);
  if (!isAbout(read.data, question)) return unknown(MISMATCH);
  const expiresAt = new Date(read.data.expiresAt).toISOString();
  return { outcome: 'ACTION_REQUIRED', url: read.data.nextAction.url, expiresAt };
};

/** Anything but an outcome of this very operation is Unknown; only codes are passed on. */
const readOutcome = (
  body: unknown,
  question: Sent,
  card?: SentCard,
): Approved | Declined | Unknown => {
  const read = outcomeBody.safeParse(body);
  if (!read.success) return unknown('malformed');
  if (!isAbout(read.data, question)) return unknown(MISMATCH);
  if (read.data.outcome === 'DECLINED') return declinedFrom(read.data, card);
  const providerReference = cleanCode(read.data.providerReference, card);
  const { authorizationExpiresAt } = read.data;
  return { outcome: 'APPROVED', providerReference, authorizationExpiresAt };
};

const isFenced = (body: unknown, question: Sent): boolean => {
  const read = fencedBody.safeParse(body);
  return read.success && read.data.operationId === question.operationId;
};

const readExecute = (
  { status, body }: RawResponse,
  question: Sent,
  card?: SentCard,
): ProviderOutcome => {
  if (status === 200) return readOrWait(body, question, card);
  if (status === 409 && isFenced(body, question))
    return { outcome: 'NOT_SENT', byProvider: true, reason: 'fenced' };
  return unknown('status');
};

const readLookUp = (
  { status, body }: RawResponse,
  question: Sent,
): Approved | Declined | ActionRequired | NotFound | Unknown => {
  if (status === 200) return readOrWait(body, question);
  if (status === 404) return { outcome: 'NOT_FOUND' };
  return unknown(status === 202 ? AT_WORK : 'status');
};

const readFence = (
  { status, body }: RawResponse,
  question: Sent,
): Approved | Declined | Fenced | Unknown => {
  if (status !== 200) return unknown(status === 202 ? AT_WORK : 'status');
  return isFenced(body, question) ? { outcome: 'FENCED' } : readOutcome(body, question);
};

const entryFrom = (
  body: ReturnType<typeof ledgerBody.parse>['operations'][number],
): LedgerEntry => {
  const { sequence, operationId, kind, paymentId, outcome, amount, currency } = body;
  const cursor = String(sequence);
  const entry = { cursor, operationId, kind, paymentId, outcome, amount, currency };
  const providerReference = cleanCode(body.providerReference) ?? '';
  return outcome === 'APPROVED'
    ? { ...entry, providerReference }
    : { ...entry, ...declinedFrom(body, undefined), outcome, providerReference };
};

const readLedger = ({ status, body }: RawResponse): LedgerPage => {
  const read = ledgerBody.safeParse(body);
  if (status !== 200 || !read.success) throw new Error(`the provider's ledger: status ${status}`);
  const { operations, next } = read.data;
  return { entries: operations.map(entryFrom), next: next === null ? null : String(next) };
};
