/** Stripe behind the port of providers: one deadline over all requests of a call. */
import type { OperationQuestion, Provider, ProviderOperation } from '../port.ts';
import { NOT_SENT, type StripeCall } from './call.ts';
import { type Deadline, type StripeAccount, startDeadline, stripeClient } from './client.ts';
import { describeToken } from './describe-token.ts';
import { execute } from './execute.ts';
import { fence } from './fence.ts';
import { AUTHORIZATION_MS_MAX, laterResults } from './later.ts';
import { type LedgerMemory, readLedger, readLedgerEnd } from './ledger.ts';
import { find } from './look-up.ts';
import { createPace } from './pace.ts';

export type StripeProviderOptions = {
  /** Base address; that it is https is the settings' to check. */
  url: string;
  version: string;
  connectTimeoutMs: number;
  /** One call of the port, all its requests included. */
  timeoutMs: number;
  account: StripeAccount;
  /** Stripe's test tokens are sent for the known test numbers. */
  testTokens: boolean;
  /** Creates, and each kind of follow-up, a second; 0 is off. */
  perSecondMax: number;
  /** Wall clock in milliseconds. */
  nowMs?: () => number;
};

const LEDGER_PAGE_MAX = 100;
/** A money request is not begun with less than this part of the deadline left. */
const CONFIRM_PART_MIN = 0.2;

/** Opens the driver; nothing is connected yet. */
export const stripeProvider = (options: StripeProviderOptions): Provider => {
  const { timeoutMs, nowMs = Date.now } = options;
  const client = stripeClient(options);
  const pace = createPace(options.perSecondMax);
  const memory: LedgerMemory = {};

  const callWithin = (deadline: Deadline): StripeCall => ({
    leftMs: deadline.leftMs,
    send: (request) => client.send(request, options.account, deadline),
  });
  const within = async <T>(work: (call: StripeCall) => Promise<T>): Promise<T> => {
    const deadline = startDeadline(timeoutMs);
    try {
      return await work(callWithin(deadline));
    } finally {
      deadline.end();
    }
  };

  const executeInTurn: Provider['execute'] = (operation: ProviderOperation, opened) =>
    within(async (call) => {
      if (!(await pace(operation.kind))) return { ...NOT_SENT, reason: 'rate_limited' };
      const { testTokens } = options;
      const confirmMsMin = timeoutMs * CONFIRM_PART_MIN;
      const execution = { call, nowMs: nowMs(), testTokens, confirmMsMin };
      return execute(execution, operation, opened);
    });

  const lookUp = (question: OperationQuestion) =>
    within(async (call) => {
      const found = await find(call, question);
      // That it cannot happen any more is the fence's to say.
      return found.outcome === 'IMPOSSIBLE' ? { outcome: 'NOT_FOUND' as const } : found;
    });

  return {
    describeToken: (token) => within((call) => describeToken(call, token)),
    execute: executeInTurn,
    lookUp,
    fence: (question) => within((call) => fence(call, question, nowMs())),
    ledger: (after, limit) =>
      within((call) =>
        readLedger(call.send, memory, after, Math.min(limit, LEDGER_PAGE_MAX), nowMs()),
      ),
    ledgerEnd: (after) =>
      within((call) => readLedgerEnd(call.send, after, LEDGER_PAGE_MAX, nowMs())),
    laterResults: (question) => within((call) => laterResults(call, question)),
    // Stripe's notices come to a route of the service (webhooks/stripe.ts).
    onNotice: () => undefined,
    authorizationMsMax: AUTHORIZATION_MS_MAX,
    close: client.close,
  };
};
