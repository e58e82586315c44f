/** Breaker, turns, metrics and spans around every provider (gaps §7). No call is sent twice. */
import { isOtherProvider } from '../shared/payment/state.ts';
import { type StartTimer, startTimer as startNodeTimer } from '../shared/runtime/back-off.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import { createTurns } from '../shared/runtime/fair-turns.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { withSpan } from '../shared/runtime/tracing.ts';
import {
  type NotSentReason,
  type OperationQuestion,
  OTHER_PROVIDER,
  type Provider,
  type ProviderOperation,
  type ProviderOutcome,
  type Unknown,
} from './port.ts';

type Options = {
  address?: string | undefined;
  onCall?: (operation: string, outcome: string, seconds: number) => void;
  onResponse?: (operation: string, response: Said) => void;
  halfOpenAfterMs?: number;
  callsMax?: number;
  /** At most 1 s: a call begins within 4 s of its intent, and others grant it 5 s beyond the provider's timeout. */
  turnWaitMsMax?: number;
  nowMs?: () => number;
  startTimer?: StartTimer;
};

export type ResilientProvider = Provider & {
  /** From the fifth failure until a call has been sent again. */
  breakerOpen(): boolean;
  /** The listener is called when it responds again after as many operations in a row without a response. */
  onBack(listener: () => void): void;
};

const FAILURES_TO_OPEN = 5;

const SPANS: Readonly<Record<string, string>> = { LOOK_UP: 'look up', LATER: 'later results' };

export type Said = { outcome: string; reason?: string; account?: string };

const NOT_SENT: ProviderOutcome = { outcome: 'NOT_SENT' };

const UNASKED: Unknown = { outcome: 'UNKNOWN', reason: 'malformed' };

/** A merchant who did not ask for it cannot send the shopper anywhere (gaps §21). */
const unlessUnasked = <T extends Said>(
  about: ProviderOperation | OperationQuestion,
  said: T,
): T | Unknown => {
  const isWanted = 'authentication' in about && about.authentication !== undefined;
  return said.outcome === 'ACTION_REQUIRED' && !isWanted ? UNASKED : said;
};

/** A rejection by the provider says nothing about the line to it. */
const couldNotBeSent = (said: ProviderOutcome): boolean =>
  said.outcome === 'NOT_SENT' &&
  said.byProvider !== true &&
  (said.reason ?? 'unreachable') === 'unreachable';

/** Protects `execute`; other calls are only measured, the ledger's are not. */
export const resilient = (provider: Provider, options: Options = {}): ResilientProvider => {
  const { callsMax = 256, turnWaitMsMax = 1000, halfOpenAfterMs = 1000 } = options;
  const { nowMs = () => performance.now(), startTimer = startNodeTimer } = options;
  const { onCall = () => undefined, onResponse = () => undefined } = options;
  const places = createTurns(callsMax);
  /** Operations in a row that could not be sent, and without a response. */
  let [unsent, unanswered] = [0, 0];
  let [tryAtMs, isTrying] = [0, false];
  let onBack = (): void => undefined;

  const noteResponse = (): void => {
    const wasAway = unanswered >= FAILURES_TO_OPEN;
    unanswered = 0;
    if (wasAway) onBack();
  };

  const measured = async <T extends Said>(name: string, call: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const response = await call();
    onCall(name, response.outcome, (performance.now() - startedAt) / 1000);
    onResponse(name, response);
    if (response.outcome !== 'UNKNOWN' && response.outcome !== 'NOT_SENT') noteResponse();
    return response;
  };

  const traced = <T extends Said>(operation: string, call: () => Promise<T>): Promise<T> => {
    const name = `provider ${SPANS[operation] ?? operation.toLowerCase()}`;
    const attributes = { 'server.address': options.address };
    const span = () =>
      withSpan({ name, kind: 'CLIENT', attributes }, call, ({ outcome }) => ({
        'payments.outcome': outcome,
        'error.type': outcome === 'UNKNOWN' ? outcome : undefined,
      }));
    return measured(operation, span);
  };

  const isOpen = (): boolean => unsent >= FAILURES_TO_OPEN;

  const throughBreaker = async (send: () => Promise<ProviderOutcome>): Promise<ProviderOutcome> => {
    const tries = isOpen();
    // No call waits for the one that tries the line.
    if (tries && (isTrying || nowMs() < tryAtMs)) return NOT_SENT;
    isTrying ||= tries;
    const outcome = await send().catch((): Unknown => ({ outcome: 'UNKNOWN', reason: 'failed' }));
    if (tries) isTrying = false;
    const isUnsent = couldNotBeSent(outcome);
    unsent = isUnsent ? unsent + 1 : 0;
    if (isUnsent) tryAtMs = nowMs() + halfOpenAfterMs;
    if (isUnsent || outcome.outcome === 'UNKNOWN') unanswered += 1;
    return outcome;
  };

  const waitForTurn = async (merchantId: string): Promise<void> => {
    const late = new AbortController();
    const stopWaiting = startTimer(() => late.abort(), turnWaitMsMax);
    await places.wait(merchantId, late.signal).finally(stopWaiting);
  };

  const execute: Provider['execute'] = async (operation, opened) => {
    const { merchantId, kind } = operation;
    try {
      if (!places.take(merchantId)) await waitForTurn(merchantId);
    } catch {
      return NOT_SENT;
    }
    try {
      const call = async () => unlessUnasked(operation, await provider.execute(operation, opened));
      return await throughBreaker(() => traced(kind, call));
    } finally {
      places.giveBack(merchantId);
    }
  };

  return {
    ...provider,
    execute,
    describeToken: (...token) => traced('DESCRIBE', () => provider.describeToken(...token)),
    lookUp: (question) =>
      traced('LOOK_UP', async () => unlessUnasked(question, await provider.lookUp(question))),
    fence: (question) => traced('FENCE', () => provider.fence(question)),
    laterResults: (question) => traced('LATER', () => provider.laterResults(question)),
    paymentOf: (...notice) => measured('NOTICE', () => provider.paymentOf(...notice)),
    breakerOpen: isOpen,
    onBack: (listener) => {
      onBack = listener;
    },
  };
};

const LINES = {
  unauthorized: 'the provider rejects the key: nothing is charged until it has another one',
  forbidden: 'the provider rejects the operation: its key lacks the permission',
  rate_limited: 'the provider limits the rate of this account: operations are not carried out',
  misconfigured: 'the provider rejects the operation: the account is not set up for it',
} as const satisfies { [Reason in NotSentReason]?: string };

type Rejection = keyof typeof LINES;
export const REJECTIONS = Object.keys(LINES) as readonly Rejection[];

const LOGGED_EVERY_MS = 60_000;
const ACCOUNTS_MAX = 10_000;
const NAMED_MAX = 100;
const NAMED_MS = 3_600_000;
const OWN = '';
const CARRIED_OUT: ReadonlySet<string> = new Set(['APPROVED', 'DECLINED']);
const MONEY: ReadonlySet<string> = new Set(['AUTHORIZE', 'SALE', 'CAPTURE', 'VOID', 'REFUND']);

/** An account that rejects what it is sent for a cause that a person has to mend; `since` is RFC 3339. */
export type Misconfigured = { reason: Rejection; account: string | undefined; since: string };

/** Counts each rejection, and logs it for each account at most once a minute. */
export const noteRejections = (options: {
  onRejection: (reason: Rejection) => void;
  logger: Pick<Logger, 'error'>;
  nowMs: () => number;
}) => {
  const { onRejection, logger, nowMs } = options;
  const loggedAtMs = createBoundedMap<number>(ACCOUNTS_MAX);
  const misconfigured = new Map<string, Misconfigured & { lastMs: number }>();

  const note = (operation: string, { outcome, reason: said, account }: Said): void => {
    const reason = REJECTIONS.find((known) => known === said);
    // A success does not say which account carried it out.
    if (CARRIED_OUT.has(outcome) && MONEY.has(operation)) misconfigured.delete(OWN);
    if (reason === undefined) return;
    onRejection(reason);
    const known = misconfigured.get(account ?? OWN);
    if (reason !== 'rate_limited' && (known !== undefined || misconfigured.size < NAMED_MAX)) {
      const { since = new Date().toISOString() } = known ?? {};
      misconfigured.set(account ?? OWN, { reason, account, since, lastMs: nowMs() });
    }
    const about = `${reason} ${account ?? ''}`;
    const last = loggedAtMs.peek(about);
    if (last !== undefined && nowMs() - last < LOGGED_EVERY_MS) return;
    loggedAtMs.set(about, nowMs());
    logger.error({ operation, reason, ...(account !== undefined && { account }) }, LINES[reason]);
  };

  return {
    note,
    /** Until an operation is carried out again; a merchant's own account for an hour. */
    misconfigured: (): Misconfigured[] =>
      [...misconfigured.values()].filter(
        ({ account, lastMs }) => account === undefined || nowMs() - lastMs < NAMED_MS,
      ),
  };
};

const AT_OTHER_PROVIDER: Unknown = { outcome: 'UNKNOWN', reason: OTHER_PROVIDER };

/**
 * A provider knows nothing of what another one was sent (ADR-0247): it would say "not found", and
 * fence an operation that moved money. So it is not asked, and the outcome stays unknown.
 */
export const forOwnOperations = <P extends Provider>(provider: P, names: readonly string[]): P => {
  const gated =
    <Q extends { provider?: string | undefined }, R>(ask: (question: Q) => Promise<R>) =>
    async (question: Q): Promise<R | Unknown> =>
      isOtherProvider(question.provider, names) ? AT_OTHER_PROVIDER : ask(question);
  return {
    ...provider,
    lookUp: gated(provider.lookUp),
    fence: gated(provider.fence),
    laterResults: gated(provider.laterResults),
  };
};
