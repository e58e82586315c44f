import { backOffMs, pause } from '../../../shared/runtime/back-off.ts';
import type { Logger } from '../../../shared/runtime/log.ts';
import type {
  NoticeOrigin,
  OperationQuestion,
  Provider,
  ProviderOperation,
  ProviderOperationKind,
} from '../port.ts';
import { describeToken } from './card-tokens.ts';
import {
  createPace,
  type Deadline,
  type StripeAccount,
  type StripeCall,
  type StripeResponse,
  startDeadline,
  stripeClient,
} from './client.ts';
import { readEnded } from './ended.ts';
import { execute } from './execute.ts';
import { cancelUnused, fence, type Times } from './fence.ts';
import { AUTHORIZATION_MS_MAX, laterResults, paymentOf } from './later-results.ts';
import { type LedgerMemory, readDisputes, readLedger, readLedgerEnd } from './ledger.ts';
import { find } from './look-up.ts';
import { NOT_FOUND, NOT_SENT, traceOf } from './read.ts';
import { listIntents, type StripeRequest } from './requests.ts';

type StripeAccounts = {
  installation: StripeAccount;
  merchants?: ReadonlyMap<string, StripeAccount>;
};

const accountOf = (
  { installation, merchants }: StripeAccounts,
  merchantId: string,
): StripeAccount => merchants?.get(merchantId) ?? installation;

const accountOfNotice = (
  accounts: StripeAccounts,
  { merchantId, account }: NoticeOrigin,
): StripeAccount | undefined => {
  if (merchantId !== undefined) return accountOf(accounts, merchantId);
  if (account === undefined) return accounts.installation;
  return allAccounts(accounts).find((one) => one.account === account);
};

const nameOf = ({ secretKey, account }: StripeAccount): string => `${secretKey} ${account ?? ''}`;

const allAccounts = ({ installation, merchants }: StripeAccounts): StripeAccount[] => {
  const all = [installation, ...(merchants?.values() ?? [])];
  return [...new Map(all.map((one) => [nameOf(one), one])).values()];
};

type StripeProviderOptions = {
  url: string;
  version: string;
  connectTimeoutMs: number;
  /** For one call of the port, all its requests included; for each request to the ledger. */
  timeoutMs: number;
  accounts: StripeAccounts;
  testTokens: boolean;
  /** Creates, and each kind of follow-up, in each account; 0 is off. */
  perSecondMax: number;
  nowMs?: () => number;
  logger?: Pick<Logger, 'info'> | undefined;
};

const LEDGER_PAGE_MAX = 100;
/** With less of the deadline left no money request begins. */
const CONFIRM_PART_MIN = 0.2;

const READ_AGAIN = { minMs: 500, maxMs: 8_000, times: 5 };
const isBusy = (response: StripeResponse): boolean =>
  'sent' in response
    ? response.reason === 'paced'
    : response.status === 429 || response.status >= 500;

const named = <T extends object>(result: T, { name }: StripeAccount): T =>
  name !== undefined && 'reason' in result ? { ...result, account: name } : result;

type Said = { outcome?: string; reason?: string; account?: string };
type About = { merchantId: string; paymentId?: string; kind?: ProviderOperationKind };

const NO_SUCCESS: readonly string[] = ['DECLINED', 'NOT_SENT', 'UNKNOWN'];
const LINE = 'Stripe did not say that it succeeded';

/** Requests to Stripe at the pace of their account, each call of the port within one deadline. */
const openCalls = (options: StripeProviderOptions) => {
  const { timeoutMs, accounts, logger, nowMs = Date.now } = options;
  const client = stripeClient(options);
  const pace = createPace(options.perSecondMax);
  const closing = new AbortController();

  const sendNow = (request: StripeRequest, account: StripeAccount, deadline: Deadline) => {
    pace.sent(nameOf(account));
    return client.send(request, account, deadline);
  };
  /** For what can wait: what became of a payment, the ledger. An unknown outcome cannot. */
  const sendInTurn: typeof sendNow = async (request, account, deadline) =>
    (await pace.read(nameOf(account)))
      ? client.send(request, account, deadline)
      : { sent: false, reason: 'paced' };

  const within = async <T extends Said>(
    account: StripeAccount,
    about: object,
    work: (call: StripeCall) => Promise<T>,
    sendOne = sendNow,
  ): Promise<T> => {
    const deadline = startDeadline(timeoutMs, nowMs);
    const heard: StripeResponse[] = [];
    const send = async (request: StripeRequest) => {
      const response = await sendOne(request, account, deadline);
      heard.push(response);
      return response;
    };
    try {
      const result = named(await work({ leftMs: deadline.leftMs, send }), account);
      const { outcome = '', reason } = result;
      if (NO_SUCCESS.includes(outcome))
        logger?.info({ ...about, outcome, reason, ...traceOf(heard) }, LINE);
      return result;
    } finally {
      deadline.end();
    }
  };
  const withinOf = <T extends Said>(
    { merchantId, paymentId, kind: operation }: About,
    work: (call: StripeCall) => Promise<T>,
    sendOne = sendNow,
  ): Promise<T> => within(accountOf(accounts, merchantId), { paymentId, operation }, work, sendOne);

  const timesNow = (): Times => ({ nowMs: nowMs(), timeoutMs, aheadMs: client.aheadMs() ?? 0 });

  /** Reads alone, so they may be repeated: a long comparison meets the rate limit of others' reads. */
  const read = async (account: StripeAccount, request: StripeRequest): Promise<StripeResponse> => {
    for (let failures = 0; ; failures += 1) {
      const deadline = startDeadline(timeoutMs, nowMs);
      const response = await sendInTurn(request, account, deadline).finally(deadline.end);
      if (!isBusy(response) || failures === READ_AGAIN.times || closing.signal.aborted)
        return response;
      await pause(backOffMs(READ_AGAIN, failures), closing.signal);
    }
  };
  /** A page may need several requests to each account: each has its own deadline. */
  const books = allAccounts(accounts).map((account) => ({
    name: account.name,
    send: (request: StripeRequest) => read(account, request),
  }));

  const stripeNowMs = async (): Promise<number> => {
    const second = Math.floor(nowMs() / 1_000);
    // No object is in it: its response tells the time.
    const empty = listIntents({ from: second, to: second }, undefined);
    if (client.aheadMs() === undefined) await books[0]?.send(empty);
    return nowMs() + timesNow().aheadMs;
  };

  return {
    ...{ pace, within, withinOf, sendInTurn, timesNow, books, stripeNowMs },
    close: () => {
      closing.abort();
      return client.close();
    },
  };
};

export const stripeProvider = (options: StripeProviderOptions): Provider => {
  const { timeoutMs, accounts, testTokens } = options;
  const calls = openCalls(options);
  const { pace, within, withinOf, sendInTurn, timesNow, books, stripeNowMs } = calls;
  const memory: LedgerMemory = {};

  const executeInTurn: Provider['execute'] = (operation: ProviderOperation, opened) =>
    withinOf(operation, async (call) => {
      const account = accountOf(accounts, operation.merchantId);
      const kind = 'card' in operation ? 'CREATE' : operation.kind;
      if (!(await pace.operation(nameOf(account), kind)))
        return { ...NOT_SENT, reason: 'rate_limited' };
      const confirmMsMin = timeoutMs * CONFIRM_PART_MIN;
      const leave = (reference: string) =>
        void within(account, {}, (later) => cancelUnused(later, reference), sendInTurn);
      const execution = { call, ...timesNow(), testTokens, confirmMsMin, leave };
      return execute(execution, operation, opened);
    });

  const lookUp = (question: OperationQuestion) =>
    withinOf(question, async (call) => {
      const found = await find(call, question);
      const isConfirmable = found.outcome === 'DECLINED' && question.waitsUntil !== undefined;
      const said = isConfirmable ? await fence(call, question, timesNow()) : found;
      // Only the fence may say that it cannot happen any more.
      return said.outcome === 'IMPOSSIBLE' || said.outcome === 'FENCED' ? NOT_FOUND : said;
    });

  return {
    describeToken: (token, merchantId) =>
      withinOf({ merchantId }, (call) => describeToken(call, token)),
    execute: executeInTurn,
    lookUp,
    fence: (question) => withinOf(question, (call) => fence(call, question, timesNow())),
    ledger: async (after, limit) => {
      const limitMax = Math.min(limit, LEDGER_PAGE_MAX);
      return readLedger(books, memory, after, limitMax, await stripeNowMs());
    },
    ledgerSince: (timeMs) => `${Math.floor(timeMs / 1_000)}.`,
    ledgerEnd: async (after) => readLedgerEnd(books, after, LEDGER_PAGE_MAX, await stripeNowMs()),
    laterResults: (question) =>
      withinOf(question, (call) => laterResults(call, question), sendInTurn),
    disputes: async () => readDisputes(books, await stripeNowMs()),
    endedAuthorizations: (sinceMs) => readEnded(books, sinceMs + timesNow().aheadMs),
    paymentOf: async (reference, origin) => {
      const account = accountOfNotice(accounts, origin);
      if (account === undefined) return { outcome: 'NOT_FOUND' };
      return within(account, { reference }, (call) => paymentOf(call, reference), sendInTurn);
    },
    onNotice: () => undefined,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    close: calls.close,
  };
};
