/** Breaker, turns, metrics and spans around every provider (gaps §7). No call is sent twice. */
import { isOtherProvider } from '../shared/payment/state.ts';
import { type StartTimer, startTimer as startNodeTimer } from '../shared/runtime/back-off.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import { createTurns } from '../shared/runtime/fair-turns.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import { isTracing, withSpan } from '../shared/runtime/tracing.ts';
import {
  type KeepOpened,
  type NotSentReason,
  type OperationQuestion,
  OTHER_PROVIDER,
  type Provider,
  type ProviderOperation,
  type ProviderOutcome,
  type Unknown,
  unknown,
} from './port.ts';

type ResilienceOptions = {
  address?: string | undefined;
  metrics?: Pick<Metrics, 'providerSeconds'>;
  onResponse?: (operation: string, response: Said) => void;
  callsMax?: number;
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
const HALF_OPEN_AFTER_MS = 1_000;
/** A call begins within 4 s of its intent, and others grant it 5 s beyond the provider's timeout. */
const TURN_WAIT_MS_MAX = 1_000;

export type Said = { outcome: string; reason?: string; account?: string };

const NOT_SENT: ProviderOutcome = { outcome: 'NOT_SENT' };

/** A merchant who did not ask for it cannot send the shopper anywhere (gaps §21). */
const unlessUnasked = <T extends Said>(
  about: ProviderOperation | OperationQuestion,
  said: T,
): T | Unknown => {
  const isWanted = 'authentication' in about && about.authentication !== undefined;
  return said.outcome === 'ACTION_REQUIRED' && !isWanted ? unknown('malformed') : said;
};

/** A rejection by the provider says nothing about the line to it. */
const couldNotBeSent = (said: ProviderOutcome): boolean =>
  said.outcome === 'NOT_SENT' &&
  said.byProvider !== true &&
  (said.reason ?? 'unreachable') === 'unreachable';

/** Sends nothing after calls in a row that could not be sent; then one at a time tries the line. */
const createBreaker = (nowMs: () => number) => {
  let [unsent, tryAtMs, isTrying] = [0, 0, false];
  const isOpen = (): boolean => unsent >= FAILURES_TO_OPEN;
  const through = async (send: () => Promise<ProviderOutcome>): Promise<ProviderOutcome> => {
    const tries = isOpen();
    // No call waits for the one that tries the line.
    if (tries && (isTrying || nowMs() < tryAtMs)) return NOT_SENT;
    isTrying ||= tries;
    const outcome = await send();
    if (tries) isTrying = false;
    unsent = couldNotBeSent(outcome) ? unsent + 1 : 0;
    tryAtMs = nowMs() + HALF_OPEN_AFTER_MS;
    return outcome;
  };
  return { isOpen, through };
};

/** Protects `execute`; other calls are only measured, the ledger's are not. */
export const resilient = (
  provider: Provider,
  options: ResilienceOptions = {},
): ResilientProvider => {
  const { callsMax = 256, nowMs = () => performance.now(), startTimer = startNodeTimer } = options;
  const { metrics, onResponse } = options;
  const attributes = { 'server.address': options.address };
  const places = createTurns(callsMax);
  const breaker = createBreaker(nowMs);
  /** Operations in a row without a response. */
  let unanswered = 0;
  let onBack = (): void => undefined;
  const hasTraces = isTracing();

  const measured = async <T extends Said>(
    operation: string,
    call: () => Promise<T>,
    span = operation.toLowerCase(),
  ): Promise<T> => {
    const startedAt = performance.now();
    const traced = () =>
      withSpan({ name: `provider ${span}`, kind: 'CLIENT', attributes }, call, ({ outcome }) => ({
        'payments.outcome': outcome,
        'error.type': outcome === 'UNKNOWN' ? outcome : undefined,
      }));
    const response = await (hasTraces ? traced() : call());
    const { outcome } = response;
    metrics?.providerSeconds.observe(
      { operation, outcome },
      (performance.now() - startedAt) / 1000,
    );
    onResponse?.(operation, response);
    if (outcome === 'UNKNOWN' || outcome === 'NOT_SENT') return response;
    const wasAway = unanswered >= FAILURES_TO_OPEN;
    unanswered = 0;
    if (wasAway) onBack();
    return response;
  };

  const send = async (
    operation: ProviderOperation,
    opened: KeepOpened,
  ): Promise<ProviderOutcome> => {
    const call = async () => unlessUnasked(operation, await provider.execute(operation, opened));
    const outcome = await measured(operation.kind, call).catch(() => unknown('failed'));
    if (couldNotBeSent(outcome) || outcome.outcome === 'UNKNOWN') unanswered += 1;
    return outcome;
  };

  const waitForTurn = async (merchantId: string): Promise<void> => {
    const late = new AbortController();
    const stopWaiting = startTimer(() => late.abort(), TURN_WAIT_MS_MAX);
    await places.wait(merchantId, late.signal).finally(stopWaiting);
  };

  return {
    ...provider,
    execute: async (operation, opened) => {
      const { merchantId } = operation;
      try {
        if (!places.take(merchantId)) await waitForTurn(merchantId);
      } catch {
        return NOT_SENT;
      }
      return breaker
        .through(() => send(operation, opened))
        .finally(() => places.giveBack(merchantId));
    },
    describeToken: (...token) => measured('DESCRIBE', () => provider.describeToken(...token)),
    lookUp: (question) => {
      const call = async () => unlessUnasked(question, await provider.lookUp(question));
      return measured('LOOK_UP', call, 'look up');
    },
    fence: (question) => measured('FENCE', () => provider.fence(question)),
    laterResults: (question) =>
      measured('LATER', () => provider.laterResults(question), 'later results'),
    paymentOf: (...notice) => measured('NOTICE', () => provider.paymentOf(...notice)),
    breakerOpen: breaker.isOpen,
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

/** A provider would fence what another carried out (ADR-0247): it is not asked, the outcome stays unknown. */
export const forOwnOperations = <P extends Provider>(provider: P, names: readonly string[]): P => {
  const gated =
    <Q extends { provider?: string | undefined }, R>(ask: (question: Q) => Promise<R>) =>
    async (question: Q): Promise<R | Unknown> =>
      isOtherProvider(question.provider, names) ? unknown(OTHER_PROVIDER) : ask(question);
  return {
    ...provider,
    lookUp: gated(provider.lookUp),
    fence: gated(provider.fence),
    laterResults: gated(provider.laterResults),
  };
};
