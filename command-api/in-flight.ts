/**
 * Calls that may still run are in flight, not unresolved (gaps §7): no process asks the provider about them or
 * fences them. Our own call holds the payment's queue; another process's is waited for by its intent's age.
 */
import type { ActionRequired } from '../providers/port.ts';
import { type Budget, BudgetSpent } from '../shared/http/request-budget.ts';
import { type Operation, unresolvedOperations } from '../shared/payment/state.ts';
import { jittered, WIDE_JITTER, pause as wait } from '../shared/runtime/back-off.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';
import type { LoadedPayment, PaymentLog } from './payment-log.ts';

type WithEvents = Pick<LoadedPayment, 'events' | 'state'>;

/** Extra time that others allow after the provider's timeout, for the append and the wait for a turn. */
const IN_FLIGHT_MARGIN_MS = 5_000;
/** An append may take long; the wait for a turn may take the rest of the margin (provider/resilience.ts). */
const CALL_BEGINS_WITHIN_MS = 4_000;
const SAID_EVERY_MS = 60_000;
/** Above this the operation that was looked at the longest ago is forgotten, and judged by its time. */
const FIRST_SEEN_MAX = 10_000;
/** Repeats ask no more often about a payment that waits for its shopper (gaps §21). */
const LOOK_UP_AGAIN_MS = 5_000;
const LOOKED_UP_MAX = 10_000;

export const intentTimeOf = ({ events }: WithEvents, { requestedAt }: Operation): string => {
  const intent = events[requestedAt];
  if (intent === undefined) throw new Error('an operation without its intent');
  return intent.time;
};

export const createInFlight = (options: {
  /** Without other processes no earlier call can run after a start. */
  sharedStore: boolean;
  providerTimeoutMs: number;
  authenticationTimeoutMs: number;
  nowMs: () => number;
  logger: Pick<Logger, 'warn'>;
  metrics: Pick<Metrics, 'slowAppends'>;
}) => {
  const { sharedStore, nowMs, logger, metrics } = options;
  const inFlightMsMax = sharedStore ? options.providerTimeoutMs + IN_FLIGHT_MARGIN_MS : 0;
  const live = new Set<string>();
  /** Read from a clock that only goes forward: another process's wall clock may be wrong. */
  const firstSeen = createBoundedMap<number>(FIRST_SEEN_MAX);

  /** The shopper's address is a secret of the provider's: it is kept nowhere else. */
  const lookedUp = createBoundedMap<{ atMs: number; url: string | undefined }>(LOOKED_UP_MAX);

  let saidAtMs = Number.NEGATIVE_INFINITY;

  const noteLate = (): void => {
    metrics.slowAppends.inc();
    if (performance.now() - saidAtMs < SAID_EVERY_MS) return;
    saidAtMs = performance.now();
    logger.warn(
      {},
      'the event store took more than 4 s for an intent, so its call to the provider was not begun: nothing was charged. The response is SERVICE_UNAVAILABLE',
    );
  };

  const see = (operationId: string): number => {
    const seenAtMs = firstSeen.get(operationId) ?? performance.now();
    firstSeen.set(operationId, seenAtMs);
    return seenAtMs;
  };

  const ageMsOf = (payment: WithEvents, operation: Operation): number =>
    nowMs() - Date.parse(intentTimeOf(payment, operation));

  const leftMsOf = (payment: WithEvents, operation: Operation): number => {
    const { operationId, waitsUntil } = operation;
    // The call has ended: the shopper is waited for.
    if (!sharedStore || waitsUntil !== undefined) return 0;
    const leftMs = inFlightMsMax - ageMsOf(payment, operation);
    // Another process's clock may be wrong: its time counts where nothing else is known.
    const isSeen = leftMs > inFlightMsMax || firstSeen.get(operationId) !== undefined;
    return Math.max(0, isSeen ? see(operationId) + inFlightMsMax - performance.now() : leftMs);
  };

  /** The shopper is with the provider: nothing is uncertain, and nothing to be done (gaps §21). */
  const isWaiting = ({ ended, waitsUntil }: Operation): boolean =>
    ended === undefined && waitsUntil !== undefined && nowMs() < Date.parse(waitsUntil);

  return {
    begin: (operationId: string): void => void live.add(operationId),
    end: (operationId: string): void => void live.delete(operationId),
    sawIntent: (operationId: string): void => {
      if (sharedStore) see(operationId);
    },
    /** This process saw the call end without an outcome, and waits for it no more. */
    sawEnd: (operationId: string): void =>
      void firstSeen.set(operationId, Number.NEGATIVE_INFINITY),
    leftMsOf,
    leftMs: (payment: WithEvents | undefined): number =>
      payment === undefined
        ? 0
        : Math.max(0, ...unresolvedOperations(payment.state).map((one) => leftMsOf(payment, one))),
    isLive: (operationId: string): boolean => live.has(operationId),
    mayRun: (payment: WithEvents, operation: Operation): boolean =>
      live.has(operation.operationId) || leftMsOf(payment, operation) > 0,
    isWaiting,
    noteLookUp: (operationId: string, url: string | undefined): void =>
      void lookedUp.set(operationId, { atMs: nowMs(), url }),
    wasJustLookedUp: (operation: Operation): boolean =>
      isWaiting(operation) &&
      Math.abs(nowMs() - (lookedUp.get(operation.operationId)?.atMs ?? 0)) < LOOK_UP_AGAIN_MS,
    /** As the provider gave it the last time; undefined where it gave none. */
    addressOf: ({ operationId }: Operation): string | undefined => lookedUp.get(operationId)?.url,
    /** No longer than AUTHENTICATION_TIMEOUT_MS, whatever the provider says. */
    waitsUntil: ({ expiresAt }: ActionRequired): string => {
      const saidMs = expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt);
      return new Date(Math.min(nowMs() + options.authenticationTimeoutMs, saidMs)).toISOString();
    },
    /** The call would begin so late that other processes no longer wait for it. */
    isTooLate: (payment: WithEvents, operation: Operation): boolean => {
      const isLate = sharedStore && ageMsOf(payment, operation) > CALL_BEGINS_WITHIN_MS;
      if (isLate) noteLate();
      return isLate;
    },
  };
};

export type InFlight = ReturnType<typeof createInFlight>;

const PAUSE_MS_MIN = 20;
const PAUSE_MS_MAX = 250;

export const pauses = (budget: Budget): ((atMostMs?: number) => Promise<void>) => {
  let pauseMs = PAUSE_MS_MIN;
  return async (atMostMs = PAUSE_MS_MAX) => {
    const leftMs = budget.leftMs();
    if (leftMs === 0) throw new BudgetSpent();
    await wait(Math.min(jittered(pauseMs, WIDE_JITTER), atMostMs, leftMs));
    pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX);
  };
};

/** Waits until no other process's call can run. Call it in the queue. Throws BudgetSpent. */
export const waitForInFlight = async (
  { paymentLog, inFlight }: { paymentLog: Pick<PaymentLog, 'load'>; inFlight: InFlight },
  paymentId: string,
  from: 'store' | 'cache',
  budget: Budget,
): Promise<LoadedPayment | undefined> => {
  const pause = pauses(budget);
  let payment = await paymentLog.load(paymentId, from);
  for (;;) {
    const leftMs = inFlight.leftMs(payment);
    if (leftMs === 0) return payment;
    await pause(leftMs);
    payment = await paymentLog.load(paymentId, 'store');
  }
};
