import { backOffMs, pause } from '../../../shared/runtime/back-off.ts';
import type { NoticeOrigin, OperationQuestion, Provider, ProviderOperation } from '../port.ts';
import { describeToken } from './card-tokens.ts';
import {
  createPace,
  type StripeAccount,
  type StripeCall,
  type StripeResponse,
  startDeadline,
  stripeClient,
} from './client.ts';
import { execute } from './execute.ts';
import { fence } from './fence.ts';
import { AUTHORIZATION_MS_MAX, laterResults, paymentOf } from './later-results.ts';
import { type LedgerMemory, readDisputes, readLedger, readLedgerEnd } from './ledger.ts';
import { find } from './look-up.ts';
import { NOT_SENT } from './read.ts';
import type { StripeRequest } from './requests.ts';

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

const allAccounts = ({ installation, merchants }: StripeAccounts): StripeAccount[] => {
  const all = [installation, ...(merchants?.values() ?? [])];
  const nameOf = ({ secretKey, account }: StripeAccount) => `${secretKey} ${account ?? ''}`;
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
};

const LEDGER_PAGE_MAX = 100;
/** With less of the deadline left no money request begins. */
const CONFIRM_PART_MIN = 0.2;

const READ_AGAIN = { minMs: 500, maxMs: 8_000, times: 5 };
const isBusy = (response: StripeResponse): boolean =>
  !('sent' in response) && (response.status === 429 || response.status >= 500);

const named = <T extends object>(result: T, { name }: StripeAccount): T =>
  name !== undefined && 'reason' in result ? { ...result, account: name } : result;

export const stripeProvider = (options: StripeProviderOptions): Provider => {
  const { timeoutMs, accounts, nowMs = Date.now } = options;
  const client = stripeClient(options);
  const pace = createPace(options.perSecondMax);
  const memory: LedgerMemory = {};

  const within = async <T extends object>(
    account: StripeAccount,
    work: (call: StripeCall) => Promise<T>,
  ): Promise<T> => {
    const deadline = startDeadline(timeoutMs);
    const send = (request: StripeRequest) => client.send(request, account, deadline);
    try {
      return named(await work({ leftMs: deadline.leftMs, send }), account);
    } finally {
      deadline.end();
    }
  };
  const withinOf = <T extends object>(
    { merchantId }: { merchantId: string },
    work: (call: StripeCall) => Promise<T>,
  ): Promise<T> => within(accountOf(accounts, merchantId), work);

  const executeInTurn: Provider['execute'] = (operation: ProviderOperation, opened) =>
    withinOf(operation, async (call) => {
      const { secretKey, account = '' } = accountOf(accounts, operation.merchantId);
      if (!(await pace(`${secretKey} ${account} ${operation.kind}`)))
        return { ...NOT_SENT, reason: 'rate_limited' };
      const { testTokens } = options;
      const confirmMsMin = timeoutMs * CONFIRM_PART_MIN;
      const execution = { call, nowMs: nowMs(), timeoutMs, testTokens, confirmMsMin };
      return execute(execution, operation, opened);
    });

  const lookUp = (question: OperationQuestion) =>
    withinOf(question, async (call) => {
      const found = await find(call, question);
      // Only the fence may say that it cannot happen any more.
      return found.outcome === 'IMPOSSIBLE' ? { outcome: 'NOT_FOUND' as const } : found;
    });

  const closing = new AbortController();
  /** Reads alone, so they may be repeated: a long comparison meets the rate limit of others' reads. */
  const read = async (account: StripeAccount, request: StripeRequest): Promise<StripeResponse> => {
    for (let failures = 0; ; failures += 1) {
      const deadline = startDeadline(timeoutMs);
      const response = await client.send(request, account, deadline).finally(deadline.end);
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

  return {
    describeToken: (token, merchantId) =>
      withinOf({ merchantId }, (call) => describeToken(call, token)),
    execute: executeInTurn,
    lookUp,
    fence: (question) =>
      withinOf(question, (call) => fence(call, question, { nowMs: nowMs(), timeoutMs })),
    ledger: (after, limit) =>
      readLedger(books, memory, after, Math.min(limit, LEDGER_PAGE_MAX), nowMs()),
    ledgerSince: (timeMs) => `${Math.floor(timeMs / 1_000)}.`,
    ledgerEnd: (after) => readLedgerEnd(books, after, LEDGER_PAGE_MAX, nowMs()),
    laterResults: (question) => withinOf(question, (call) => laterResults(call, question)),
    disputes: () => readDisputes(books, nowMs()),
    paymentOf: async (reference, origin) => {
      const account = accountOfNotice(accounts, origin);
      if (account === undefined) return { outcome: 'NOT_FOUND' };
      return within(account, (call) => paymentOf(call, reference));
    },
    onNotice: () => undefined,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    close: () => {
      closing.abort();
      return client.close();
    },
  };
};
