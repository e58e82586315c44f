/**
 * Ends what was left open (gaps §7): asks the provider for the outcome of an intent that has
 * none, fences what was never carried out, and records the answer. It never sends an operation
 * again and never turns "unknown" into "failed".
 *
 * In flight is not unresolved. A call of this process holds its payment's queue, and everything
 * here runs in that queue. A call of another process is waited for until its intent is so old that
 * it must have ended; several processes may then ask at once, for asking and fencing are safe to
 * repeat and the exact revision lets one of them record what was found.
 */
import type { EventContext } from '../../shared/event-store/port.ts';
import type { FinalOutcomeDetails } from '../../shared/payment/outcome.ts';
import {
  type Operation,
  type OperationKind,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';
import type { LoadedPayment, PaymentLog } from '../payment-log.ts';
import {
  AT_WORK,
  type OperationQuestion,
  type Provider,
  type ProviderOutcome,
} from '../provider/port.ts';
import type { Queues } from '../queues.ts';
import { startBudget } from '../request-budget.ts';
import { type Attempted, createRetrySchedules } from './retry-schedule.ts';

/** An operation whose call has ended without an outcome; amounts in minor units. */
export type UnresolvedOperation = {
  paymentId: string;
  merchantId: string;
  operation: OperationKind;
  operationId: string;
  amountMinor: number;
  /** The time of its intent. */
  since: string;
  /** How often it was asked for in vain by this process. */
  attempts: number;
  /** Null while a try waits for its turn, and where another process follows it. */
  nextAttemptAt: string | null;
};

/** A person's word for an outcome in place of the provider's (resolve-by-hand.ts). */
export type RecordedBy = { context?: EventContext; resolution?: { evidence: string } };

export type Recovery = {
  /**
   * Asks about each open operation that no call may still be running for, and records what is
   * definite. Call it in the payment's queue. Returns the payment as it is afterwards, read from
   * the store.
   */
  resolve(paymentId: string): Promise<LoadedPayment>;
  /**
   * What the provider says of an operation for good; undefined while it is unknown, `at work` when
   * it says so itself, which is believed for a day.
   */
  ask(
    payment: LoadedPayment,
    open: Operation,
  ): Promise<FinalOutcomeDetails | 'at work' | undefined>;
  /** Records an outcome. Call it in the payment's queue. Throws what the event store throws. */
  record(
    payment: LoadedPayment,
    operationId: string,
    outcome: FinalOutcomeDetails,
    by?: RecordedBy | 'recovery',
  ): Promise<LoadedPayment>;
  /** Milliseconds until no call of another process can be running on the payment; 0: none is. */
  inFlightMs(payment: LoadedPayment): number;
  /** True while the operation's call may be running, here or elsewhere. */
  mayRun(payment: LoadedPayment, open: Operation): boolean;
  /** True when the operation's call would begin so late that others no longer wait for it. */
  isTooLate(payment: LoadedPayment, operation: Operation): boolean;
  /** This process is about to call the provider. */
  callBegins(operationId: string): void;
  /**
   * The call has ended; where it left the outcome open, the retry schedule begins. `known` is the payment
   * with the intent, where that is known to be stored: an equal create joins it from now on.
   */
  callEnded(
    paymentId: string,
    operationId: string,
    outcome: 'recorded' | 'open',
    known?: LoadedPayment,
  ): void;
  /** Begins the retry schedule for a payment that may have something unresolved, with a try at once. */
  track(paymentId: string): void;
  /** Stops following the payments, of those it follows, that another process has ended. */
  dropEnded(stillOpen: ReadonlySet<string>): Promise<void>;
  /** The unresolved create of an equal request, to be joined (gaps §7). */
  unresolvedCreate(fingerprint: string): string | undefined;
  /** How many payments are unresolved, and the age of the oldest in seconds. */
  unresolved(): { count: number; oldestSeconds: number };
  /** The unresolved operations that this process follows. */
  list(): UnresolvedOperation[];
  /**
   * Ends the retry schedules, and asks no further question but those that a request waits for. What is
   * open stays open and is found again at the next start.
   */
  stopAsking(): void;
};

export type RecoveryOptions = {
  log: PaymentLog;
  provider: Provider;
  queues: Queues;
  /** Waits between tries, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  /**
   * How old an intent of another process has to be before its call must have ended
   * (`inFlightMsMaxOf`); 0, the default, where no other process appends to the store.
   */
  inFlightMsMax?: number;
  nowMs: () => number;
  logger: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
};

/** What others wait beyond the provider's time-out: for the append, and for a place in the guard. */
const IN_FLIGHT_MARGIN_MS = 2_000;
/** Half of it: the guard's queue may take the other half (provider/guard.ts). */
const CALL_BEGINS_WITHIN_MS = 1_000;
/** How long the store may take to accept an outcome; the request's own budget does not bound it. */
const RECORD_BUDGET_MS = 10_000;

/** A provider that has been at work for longer will never answer. */
const AT_WORK_MS_MAX = 86_400_000;

/** Of these the oldest is forgotten, and waited for once more. */
const FROM_AHEAD_MAX = 10_000;

/** How old another process's intent has to be before anybody asks about it (gaps §7). */
export const inFlightMsMaxOf = (providerTimeoutMs: number): number =>
  providerTimeoutMs + IN_FLIGHT_MARGIN_MS;

/** What an answer to a live call or to a question says for good; undefined while it is unknown. */
export const outcomeOf = (
  response: ProviderOutcome | { outcome: 'FENCED' } | { outcome: 'NOT_FOUND' },
): FinalOutcomeDetails | undefined => {
  switch (response.outcome) {
    case 'APPROVED':
      return { outcome: 'APPROVED', providerReference: response.providerReference };
    case 'DECLINED':
      return {
        outcome: 'DECLINED',
        failureCode: response.failureCode,
        providerFailureCode: response.providerFailureCode,
      };
    case 'NOT_SENT':
      return { outcome: 'NOT_SENT' };
    case 'FENCED':
      return { outcome: 'FENCED' };
    case 'NOT_FOUND':
    // seeded bug: unknown-stays-open
    case 'UNKNOWN':
      return undefined;
  }
};

/** The time of an operation's intent, RFC 3339. */
export const intentTimeOf = ({ events }: LoadedPayment, { requestedAt }: Operation): string => {
  const intent = events[requestedAt];
  if (intent === undefined) throw new Error('an operation without its intent');
  return intent.time;
};

/** What this process remembers of an unresolved payment. */
type Followed = {
  merchantId: string;
  open: (Pick<UnresolvedOperation, 'operation' | 'operationId' | 'amountMinor' | 'since'> & {
    fingerprint: string;
  })[];
};

export const createRecovery = (options: RecoveryOptions): Recovery => {
  const { log, provider, queues, delaysMs, nowMs, logger, inFlightMsMax = 0 } = options;
  /** Operations that this process is at the provider with. */
  const live = new Set<string>();
  /** Operations whose call this process has seen end, by payment: nobody has to wait for them. */
  const ended = new Map<string, Set<string>>();
  /** When an operation was first seen here whose intent is, by our clock, yet to come. */
  const fromAhead = createBoundedMap<number>(FROM_AHEAD_MAX);
  const followed = new Map<string, Followed>();
  let stopped = false;
  /** Fingerprint of unresolved creates -> their payments: equal ones can have run side by side. */
  const creates = new Map<string, Set<string>>();

  /** By a clock that only goes forward: the call had begun when its intent was first seen here. */
  const leftSinceSeenMs = (operationId: string): number => {
    const seenAtMs = fromAhead.get(operationId) ?? performance.now();
    fromAhead.set(operationId, seenAtMs);
    return Math.max(0, seenAtMs + inFlightMsMax - performance.now());
  };

  const leftInFlightMs = (payment: LoadedPayment, open: Operation): number => {
    if (inFlightMsMax === 0 || payment.state === undefined) return 0;
    // seeded bug: others-in-flight
    if (ended.get(payment.state.paymentId)?.has(open.operationId)) return 0;
    const leftMs = Date.parse(intentTimeOf(payment, open)) + inFlightMsMax - nowMs();
    return leftMs > inFlightMsMax ? leftSinceSeenMs(open.operationId) : Math.max(0, leftMs);
  };

  const mayRun: Recovery['mayRun'] = (payment, open) =>
    live.has(open.operationId) || leftInFlightMs(payment, open) > 0;

  const inFlightMs: Recovery['inFlightMs'] = (payment) => {
    if (inFlightMsMax === 0) return 0;
    const left = unresolvedOperations(payment.state).map((open) => leftInFlightMs(payment, open));
    return Math.max(0, ...left);
  };

  const ask: Recovery['ask'] = async (payment, open) => {
    const { state } = payment;
    const { operationId, amountMinor: amount } = open;
    if (state === undefined) return undefined;
    // seeded bug: question-of-recovery
    const question: OperationQuestion = { operationId, amount, currency: state.currency };
    const found = await provider.lookUp(question);
    // A bare "not found" decides nothing: the operation may still be on its way.
    // seeded bug: fence
    const response = found.outcome === 'NOT_FOUND' ? await provider.fence(question) : found;
    const ageMs = nowMs() - Date.parse(intentTimeOf(payment, open));
    const isAtWork = response.outcome === 'UNKNOWN' && response.reason === AT_WORK;
    if (isAtWork && ageMs < AT_WORK_MS_MAX) return 'at work';
    return outcomeOf(response);
  };

  const contextOf = (intent: EventContext, intentId: string, by: RecordedBy | 'recovery') => {
    if (by === 'recovery') return { ...intent, actor: 'recovery', causationId: intentId };
    return { ...(by.context ?? intent), causationId: intentId };
  };

  const record: Recovery['record'] = async (payment, operationId, outcome, by = {}) => {
    const { state } = payment;
    if (state === undefined) throw new Error('an outcome for a payment that is not there');
    const intent = payment.events.find(({ event }) => event.data.operationId === operationId);
    if (intent === undefined) throw new Error('an outcome without its intent');
    const resolution = by === 'recovery' ? undefined : by.resolution;
    const command = {
      kind: 'record',
      operationId,
      ...outcome,
      ...(resolution !== undefined && { resolution }),
    } as const;
    const executed = await log.execute(
      state.paymentId,
      command,
      contextOf(intent.context, intent.id, by),
      startBudget(RECORD_BUDGET_MS),
    );
    if (unresolvedOperations(executed.payment.state).length === 0) forget(state.paymentId);
    else if (followed.has(state.paymentId)) follow(state.paymentId, executed.payment);
    return executed.payment;
  };

  const resolveOne = async (payment: LoadedPayment, open: Operation): Promise<LoadedPayment> => {
    if (payment.state === undefined || leftInFlightMs(payment, open) > 0) return payment;
    const { paymentId } = payment.state;
    const { operationId, kind } = open;
    const outcome = await ask(payment, open);
    if (outcome === undefined || outcome === 'at work') return payment;
    const resolved = await record(payment, operationId, outcome, 'recovery');
    logger.info({ paymentId, operation: kind, outcome: outcome.outcome }, 'outcome recovered');
    return resolved;
  };

  const resolveWhile = async (goOn: () => boolean, paymentId: string): Promise<LoadedPayment> => {
    let payment = await log.load(paymentId, 'store');
    for (const open of unresolvedOperations(payment.state)) {
      // Each question may take the provider's whole time-out, and a stop has its own.
      if (!goOn()) break;
      payment = await resolveOne(payment, open);
    }
    if (unresolvedOperations(payment.state).length === 0) forget(paymentId);
    return payment;
  };
  const resolve: Recovery['resolve'] = (paymentId) => resolveWhile(() => true, paymentId);

  const forget = (paymentId: string): void => {
    retrySchedules.end(paymentId);
    ended.delete(paymentId);
    unfollow(paymentId);
  };

  const unfollow = (paymentId: string): void => {
    for (const { fingerprint } of followed.get(paymentId)?.open ?? []) {
      const equal = creates.get(fingerprint);
      equal?.delete(paymentId);
      if (equal?.size === 0) creates.delete(fingerprint);
    }
    followed.delete(paymentId);
  };

  /** Remembers what is unresolved now; what may be in flight elsewhere is not. */
  const follow = (paymentId: string, payment: LoadedPayment): void => {
    unfollow(paymentId);
    const { state } = payment;
    if (state === undefined) return;
    const unresolved = unresolvedOperations(state).filter((open) => !mayRun(payment, open));
    if (unresolved.length === 0) return;
    followed.set(paymentId, {
      merchantId: state.merchantId,
      open: unresolved.map((open) => ({
        operation: open.kind,
        operationId: open.operationId,
        amountMinor: open.amountMinor,
        since: intentTimeOf(payment, open),
        fingerprint: open.identity.fingerprint,
      })),
    });
    const create = unresolved.find(({ kind }) => kind === 'create')?.identity.fingerprint;
    if (create !== undefined)
      creates.set(create, (creates.get(create) ?? new Set()).add(paymentId));
  };

  const attempt = async (paymentId: string): Promise<Attempted> => {
    const payment = await queues.run(paymentId, () => resolveWhile(() => !stopped, paymentId));
    if (unresolvedOperations(payment.state).length === 0) return { kind: 'none' };
    follow(paymentId, payment);
    const leftMs = inFlightMs(payment);
    return leftMs > 0 && !followed.has(paymentId)
      ? { kind: 'in flight', leftMs }
      : { kind: 'open' };
  };

  const retrySchedules = createRetrySchedules({
    delaysMs,
    nowMs,
    attempt,
    onVain: (paymentId, { attempts, nextAttemptMs, error }) => {
      const open = followed.get(paymentId)?.open[0];
      const fields = {
        paymentId,
        attempts,
        nextAttemptSeconds: Math.round(nextAttemptMs / 1000),
        ...(open && {
          operation: open.operation,
          ageSeconds: Math.round((nowMs() - Date.parse(open.since)) / 1000),
        }),
      };
      if (error === undefined) logger.warn(fields, 'the outcome is still unknown');
      else logger.warn({ ...fields, err: error }, 'recovery could not ask or record');
    },
  });

  const isLive = (paymentId: string): boolean => {
    const known = log.peek(paymentId);
    const open = known === undefined ? [] : unresolvedOperations(known.state);
    return open.length > 0 && open.every(({ operationId }) => live.has(operationId));
  };

  return {
    resolve,
    ask,
    record,
    inFlightMs,
    mayRun,
    isTooLate: (payment, operation) =>
      inFlightMsMax > 0 &&
      nowMs() - Date.parse(intentTimeOf(payment, operation)) > CALL_BEGINS_WITHIN_MS,
    callBegins: (operationId) => void live.add(operationId),
    callEnded: (paymentId, operationId, outcome, known) => {
      live.delete(operationId);
      if (outcome === 'recorded') return;
      retrySchedules.beginAnew(paymentId);
      if (retrySchedules.get(paymentId) === undefined) return;
      ended.set(paymentId, (ended.get(paymentId) ?? new Set()).add(operationId));
      if (known !== undefined) follow(paymentId, known);
    },
    track: (paymentId) => {
      // A live call ends by itself, and says so.
      if (!isLive(paymentId)) retrySchedules.begin(paymentId);
    },
    dropEnded: async (stillOpen) => {
      for (const paymentId of [...followed.keys()]) {
        if (stillOpen.has(paymentId)) continue;
        await queues.run(paymentId, async () => {
          const { state } = await log.load(paymentId, 'store');
          if (unresolvedOperations(state).length === 0) forget(paymentId);
        });
      }
    },
    unresolvedCreate: (fingerprint) => creates.get(fingerprint)?.values().next().value,
    unresolved: () => {
      const since = [...followed.values()].flatMap(({ open }) => open.map((o) => o.since));
      const oldest = since.reduce((least, time) => (time < least ? time : least), '9');
      const oldestSeconds = since.length === 0 ? 0 : (nowMs() - Date.parse(oldest)) / 1000;
      return { count: followed.size, oldestSeconds: Math.max(0, oldestSeconds) };
    },
    list: () =>
      [...followed].flatMap(([paymentId, { merchantId, open }]) => {
        const { attempts = 0, nextTryAtMs } = retrySchedules.get(paymentId) ?? {};
        const nextAttemptAt =
          nextTryAtMs === undefined ? null : new Date(nextTryAtMs).toISOString();
        return open.map(({ fingerprint: _, ...operation }) => ({
          paymentId,
          merchantId,
          ...operation,
          attempts,
          nextAttemptAt,
        }));
      }),
    stopAsking: () => {
      stopped = true;
      retrySchedules.stop();
    },
  };
};
