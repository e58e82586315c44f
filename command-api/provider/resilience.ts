/**
 * Circuit breaker, bulkhead and metrics around the provider (gaps §7): while it is out of reach, a
 * create does not cost its connect timeout, and the calls at once are bounded. No call is sent twice;
 * a call that is held back is NOT_SENT, and is not measured.
 */
import {
  bulkhead,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhenResult,
  type IBackoff,
  type IBackoffFactory,
} from 'cockatiel';
import { type StartTimer, startTimer as startNodeTimer } from '../../shared/runtime/timer.ts';
import type { Opened, Provider, ProviderOperation, ProviderOutcome } from './port.ts';

export type ResilienceOptions = {
  /** Called after each call that was sent, with what it did, its outcome and its time in seconds. */
  onCall?: (operation: string, outcome: string, seconds: number) => void;
  /** Called with the operation and the reason, if any, of each outcome, and whose account it is of. */
  onReason?: (operation: string, reason: string | undefined, account: string | undefined) => void;
  halfOpenAfterMs?: number;
  /** Calls at once, and calls that may wait for a place. */
  callsMax?: number;
  queueMax?: number;
  /**
   * The longest wait for a place. Below the 2 s that other processes grant an intent beyond the
   * provider's timeout before they ask about it.
   */
  queueWaitMsMax?: number;
  /** A clock that only goes forward, in milliseconds. */
  nowMs?: () => number;
  startTimer?: StartTimer;
};

export type ResilientProvider = Provider & {
  /** True from the fifth failure until a call has been sent again; for metrics. */
  breakerOpen(): boolean;
};

/** Calls in a row that could not be sent before the breaker opens. */
const FAILURES_TO_OPEN = 5;

const NOT_SENT: ProviderOutcome = { outcome: 'NOT_SENT' };

/**
 * Only what says that the provider is away: a rejection by the provider itself, of a card, a key, a
 * permission or a rate, says nothing about the line to it.
 */
const couldNotBeSent = (response: unknown): boolean => {
  const outcome = response as ProviderOutcome | undefined;
  if (outcome?.outcome !== 'NOT_SENT' || outcome.byProvider === true) return false;
  return (outcome.reason ?? 'unreachable') === 'unreachable';
};

/**
 * How long the breaker stays open, by a clock that only goes forward: the library compares with the
 * wall clock, which set back by an hour would keep it open for that hour.
 */
const onlyForward = (openMs: number, nowMs: () => number): IBackoffFactory<unknown> => {
  const next = (): IBackoff<unknown> => {
    const until = nowMs() + openMs;
    return {
      get duration() {
        return nowMs() < until ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
      },
      next,
    };
  };
  return { next };
};

/** Protects `execute` of a provider; looking up and fencing are only measured, listing is not. */
export const resilient = (
  provider: Provider,
  options: ResilienceOptions = {},
): ResilientProvider => {
  const { callsMax = 256, queueMax = 1024, queueWaitMsMax = 1000 } = options;
  const { nowMs = () => performance.now(), startTimer = startNodeTimer } = options;
  const { onCall = () => undefined, onReason = () => undefined } = options;
  const places = bulkhead(callsMax, queueMax);
  const breaker = circuitBreaker(handleWhenResult(couldNotBeSent), {
    halfOpenAfter: onlyForward(options.halfOpenAfterMs ?? 1000, nowMs),
    breaker: new ConsecutiveBreaker(FAILURES_TO_OPEN),
  });

  const measured = async <T extends { outcome: string; reason?: string; account?: string }>(
    operation: string,
    call: Promise<T>,
  ): Promise<T> => {
    const startedAt = performance.now();
    const response = await call;
    onCall(operation, response.outcome, (performance.now() - startedAt) / 1000);
    onReason(operation, response.reason, response.account);
    return response;
  };

  const throughBreaker = (send: () => Promise<ProviderOutcome>): Promise<ProviderOutcome> => {
    // The library would let all calls wait for the one that tries the line: past their timeout.
    if (breaker.state === CircuitState.HalfOpen) return Promise.resolve(NOT_SENT);
    return breaker.execute(send);
  };

  const execute = async (
    operation: ProviderOperation,
    opened: Opened,
  ): Promise<ProviderOutcome> => {
    let sent = false;
    const send = (): Promise<ProviderOutcome> => {
      sent = true;
      return measured(operation.kind, provider.execute(operation, opened));
    };
    const waiting = new AbortController();
    const gaveUp = Promise.withResolvers<ProviderOutcome>();
    const giveUp = (): void => {
      waiting.abort();
      gaveUp.resolve(NOT_SENT);
    };
    const stopWaiting = places.executionSlots > 0 ? undefined : startTimer(giveUp, queueWaitMsMax);
    const response = places.execute(() => {
      stopWaiting?.();
      return throughBreaker(send);
    }, waiting.signal);
    try {
      return await Promise.race([response, gaveUp.promise]);
    } catch {
      // A full queue or an open breaker. A provider that threw may have acted.
      return sent ? { outcome: 'UNKNOWN', reason: 'failed' } : NOT_SENT;
    } finally {
      stopWaiting?.();
    }
  };

  return {
    ...provider,
    execute,
    describeToken: (token, merchantId) =>
      measured('DESCRIBE', provider.describeToken(token, merchantId)),
    lookUp: (question) => measured('LOOK_UP', provider.lookUp(question)),
    fence: (question) => measured('FENCE', provider.fence(question)),
    laterResults: (question) => measured('LATER', provider.laterResults(question)),
    paymentOf: (reference, origin) => measured('NOTICE', provider.paymentOf(reference, origin)),
    breakerOpen: () => breaker.state !== CircuitState.Closed,
  };
};
