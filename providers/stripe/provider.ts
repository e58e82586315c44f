import { backOffMs, pause } from '../../shared/runtime/back-off.ts';
import type { Logger } from '../../shared/runtime/log.ts';
import type { NoticeOrigin, Provider, Unknown } from '../port.ts';
import { describeToken } from './card-tokens.ts';
import {
  nameOf,
  type StripeAccount,
  type StripeCall,
  type StripeClient,
  type StripeResponse,
  stripeClient,
  timeLeft,
} from './client.ts';
import { execute } from './execute.ts';
import {
  laterResults,
  paymentOfIntent,
  readDisputes,
  readElsewhere,
  STRIPE_AUTHORIZATION_MS_MAX,
} from './later-results.ts';
import { type LedgerMemory, readLedgerEnd, readStripeLedger } from './ledger.ts';
import { cancelUnused, fence, find } from './look-up.ts';
import { NOT_FOUND, NOT_SENT, requestIdsOf, unknownBy } from './read.ts';
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

const allAccounts = ({ installation, merchants }: StripeAccounts): StripeAccount[] => {
  const all = [installation, ...(merchants?.values() ?? [])];
  return [...new Map(all.map((one) => [nameOf(one), one])).values()];
};

type StripeProviderOptions = Parameters<typeof stripeClient>[0] & {
  /** For one call of the port, all its requests included; for each request to the ledger. */
  timeoutMs: number;
  accounts: StripeAccounts;
  testTokens: boolean;
  /** Creates, and each kind of follow-up, in each account; 0 is off. */
  perSecondMax: number;
  logger?: Pick<Logger, 'info'> | undefined;
};

const LEDGER_END_MAX = 100;

const READ_AGAIN = { minMs: 500, maxMs: 8_000, times: 5 };
const isBusy = ({ lost, status }: StripeResponse): boolean =>
  lost?.reason === 'paced' || status === 429 || status >= 500;

const named = <T extends object>(result: T, { name }: StripeAccount): T =>
  name !== undefined && 'reason' in result ? { ...result, account: name } : result;

type Said = { outcome?: string; reason?: string; account?: string };

const NO_SUCCESS: readonly string[] = ['DECLINED', 'NOT_SENT', 'UNKNOWN'];
const LINE = 'Stripe did not say that it succeeded';

const callsOf =
  ({ timeoutMs, logger, nowMs = Date.now }: StripeProviderOptions, client: StripeClient) =>
  async <T extends Said>(
    account: StripeAccount,
    about: { paymentId?: string; kind?: string; reference?: string | undefined },
    work: (call: StripeCall) => Promise<T>,
    turn = client.pace.atOnce,
  ): Promise<T | Unknown> => {
    const signal = AbortSignal.timeout(timeoutMs);
    const heard: StripeResponse[] = [];
    const send = async (request: StripeRequest): Promise<StripeResponse> => {
      const response = await client.send(request, account, signal, turn);
      heard.push(response);
      return response;
    };
    const leftMs = timeLeft(timeoutMs, nowMs);
    const aheadMs = client.aheadMs() ?? 0;
    const call = { send, leftMs, nowMs: nowMs(), timeoutMs, aheadMs };
    const result = named(await work(call).catch(unknownBy), account);
    const { outcome = '', reason } = result as Said;
    const { paymentId, kind: operation, reference } = about;
    const requestIds = requestIdsOf(heard);
    if (NO_SUCCESS.includes(outcome))
      logger?.info({ paymentId, operation, reference, outcome, reason, requestIds }, LINE);
    return result;
  };

/** What each account lists, read at leisure; a page may need several requests, each with its own deadline. */
const openBooks = (
  { accounts, timeoutMs, nowMs = Date.now }: StripeProviderOptions,
  client: StripeClient,
) => {
  const closing = new AbortController();
  /** Reads alone, so they may be repeated: a long comparison meets the rate limit of others' reads. */
  const read = async (account: StripeAccount, request: StripeRequest): Promise<StripeResponse> => {
    for (let failures = 0; ; failures += 1) {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await client.send(request, account, signal, client.pace.read);
      const isLast = failures === READ_AGAIN.times || closing.signal.aborted;
      if (!isBusy(response) || isLast) return response;
      await pause(backOffMs(READ_AGAIN, failures), closing.signal);
    }
  };
  const books = allAccounts(accounts).map((account) => ({
    name: account.name,
    send: (request: StripeRequest) => read(account, request),
  }));
  const stripeNowMs = async (): Promise<number> => {
    const second = Math.floor(nowMs() / 1_000);
    // No object is in it: its response tells the time.
    const empty = listIntents({ from: second, to: second })();
    if (client.aheadMs() === undefined) await books[0]?.send(empty);
    return nowMs() + (client.aheadMs() ?? 0);
  };
  return { books, stripeNowMs, stop: () => closing.abort() };
};

export const stripeProvider = (options: StripeProviderOptions): Provider => {
  const { accounts, testTokens, nowMs = Date.now } = options;
  const client = stripeClient(options);
  const { pace } = client;
  const within = callsOf(options, client);
  const { books, stripeNowMs, stop } = openBooks(options, client);
  const memory: LedgerMemory = {};
  const accountFor = (merchantId: string) => accountOf(accounts, merchantId);

  return {
    describeToken: (token, merchantId) =>
      within(accountFor(merchantId), {}, (call) => describeToken(call, token)),
    execute: (operation, opened) => {
      const account = accountFor(operation.merchantId);
      return within(account, operation, async (call) => {
        const kind = 'card' in operation ? 'CREATE' : operation.kind;
        if (!(await pace.operation(nameOf(account), kind)))
          return { ...NOT_SENT, reason: 'rate_limited' };
        const leave = (reference: string) =>
          void within(account, {}, (later) => cancelUnused(later, reference), pace.read);
        return execute({ ...call, testTokens, leave }, operation, opened);
      });
    },
    lookUp: (question) =>
      within(accountFor(question.merchantId), question, async (call) => {
        const found = await find(call, question);
        const isConfirmable = found.outcome === 'DECLINED' && question.waitsUntil !== undefined;
        const said = isConfirmable ? await fence(call, question) : found;
        // Only the fence may say that it cannot happen any more.
        return said.outcome === 'IMPOSSIBLE' || said.outcome === 'FENCED' ? NOT_FOUND : said;
      }),
    fence: (question) =>
      within(accountFor(question.merchantId), question, (call) => fence(call, question)),
    ledger: async (after, limit, since) => {
      const start = since === undefined ? after : `${Math.floor(Date.parse(since) / 1_000)}.`;
      const page = await readStripeLedger(
        books,
        memory,
        after ?? start,
        limit,
        await stripeNowMs(),
      );
      return { ...page, since };
    },
    ledgerEnd: async (after) => readLedgerEnd(books, after, LEDGER_END_MAX, await stripeNowMs()),
    laterResults: (question) => {
      const { merchantId, paymentId } = question;
      const ask = (call: StripeCall) => laterResults(call, question);
      return within(accountFor(merchantId), { paymentId }, ask, pace.read);
    },
    disputes: async () => readDisputes(books, await stripeNowMs()),
    madeElsewhere: (sinceMs) => {
      const aheadMs = client.aheadMs() ?? 0;
      return readElsewhere(books, sinceMs + aheadMs, nowMs() + aheadMs);
    },
    paymentOf: async (reference, origin) => {
      const account = accountOfNotice(accounts, origin);
      if (account === undefined) return { outcome: 'NOT_FOUND' };
      return within(account, { reference }, (call) => paymentOfIntent(call, reference), pace.read);
    },
    authorizationMsMax: STRIPE_AUTHORIZATION_MS_MAX,
    close: () => {
      stop();
      return client.close();
    },
  };
};
