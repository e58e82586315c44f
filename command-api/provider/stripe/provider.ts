/** Stripe behind the port of providers: one deadline over all requests of a call. */
import type { OperationQuestion, Provider, ProviderOperation } from '../port.ts';
import { accountOf, accountOfNotice, allAccounts, type StripeAccounts } from './accounts.ts';
import { NOT_SENT, type StripeCall } from './call.ts';
import { type StripeAccount, startDeadline, stripeClient } from './client.ts';
import { describeToken } from './describe-token.ts';
import { execute } from './execute.ts';
import { fence } from './fence.ts';
import { AUTHORIZATION_MS_MAX, laterResults, paymentOf } from './later.ts';
import { type LedgerMemory, readLedger } from './ledger.ts';
import { readLedgerEnd } from './ledger-end.ts';
import { find } from './look-up.ts';
import { createPace } from './pace.ts';
import type { StripeRequest } from './requests.ts';

export type StripeProviderOptions = {
  /** Base address; that it is https is the settings' to check. */
  url: string;
  version: string;
  connectTimeoutMs: number;
  /** One call of the port, all its requests included; of the ledger each request. */
  timeoutMs: number;
  accounts: StripeAccounts;
  /** Stripe's test tokens are sent for the known test numbers. */
  testTokens: boolean;
  /** Creates, and each kind of follow-up, a second in each account; 0 is off. */
  perSecondMax: number;
  /** Wall clock in milliseconds. */
  nowMs?: () => number;
};

const LEDGER_PAGE_MAX = 100;
/** A money request is not begun with less than this part of the deadline left. */
const CONFIRM_PART_MIN = 0.2;

/** What a merchant's own account says of itself, the key and the rate for two, names it in the log. */
const named = <T extends object>(result: T, { name }: StripeAccount): T =>
  name !== undefined && 'reason' in result ? { ...result, account: name } : result;

/** Opens the driver; nothing is connected yet. */
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
      const execution = { call, nowMs: nowMs(), testTokens, confirmMsMin };
      return execute(execution, operation, opened);
    });

  const lookUp = (question: OperationQuestion) =>
    withinOf(question, async (call) => {
      const found = await find(call, question);
      // That it cannot happen any more is the fence's to say.
      return found.outcome === 'IMPOSSIBLE' ? { outcome: 'NOT_FOUND' as const } : found;
    });

  /** A page may need some requests to each account: each of them has a deadline of its own. */
  const books = allAccounts(accounts).map((account) => ({
    name: account.name,
    send: async (request: StripeRequest) => {
      const deadline = startDeadline(timeoutMs);
      return client.send(request, account, deadline).finally(deadline.end);
    },
  }));

  return {
    describeToken: (token, merchantId) =>
      withinOf({ merchantId }, (call) => describeToken(call, token)),
    execute: executeInTurn,
    lookUp,
    fence: (question) => withinOf(question, (call) => fence(call, question, nowMs())),
    ledger: (after, limit) =>
      readLedger(books, memory, after, Math.min(limit, LEDGER_PAGE_MAX), nowMs()),
    ledgerEnd: (after) => readLedgerEnd(books, after, LEDGER_PAGE_MAX, nowMs()),
    laterResults: (question) => withinOf(question, (call) => laterResults(call, question)),
    paymentOf: async (reference, origin) => {
      const account = accountOfNotice(accounts, origin);
      if (account === undefined) return { outcome: 'NOT_FOUND' };
      return within(account, (call) => paymentOf(call, reference));
    },
    // Stripe's notices come to a route of the service (webhooks/stripe.ts).
    onNotice: () => undefined,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    close: client.close,
  };
};
