/**
 * What this process knows to be unresolved: operations whose intent is stored, whose call has
 * ended, and whose outcome is not recorded. Each of their payments has a retry schedule, by which
 * the provider is asked until the outcome is known (ask.ts); and no less where the outcome was
 * resolved by hand, until the provider is definite (confirm.ts).
 */

import { StreamNotWhole } from '../../shared/event-store/errors.ts';
import { unconfirmedOperations, unresolvedOperations } from '../../shared/payment/payment-state.ts';
import type { Logger } from '../../shared/runtime/logger.ts';
import type { Queues } from '../../shared/runtime/queues.ts';
import type { InFlight } from '../in-flight.ts';
import type { LoadedPayment } from '../loaded-payment.ts';
import type { PaymentLog } from '../payment-log.ts';
import { type Attempted, createRetrySchedules, type FailedAttempt } from './retry-schedule.ts';
import { createUnresolvedIndex, isDone, type KnownOperation } from './unresolved-index.ts';

/** An unresolved operation, and when the provider is asked about it again. */
export type UnresolvedOperation = KnownOperation & {
  /** How often this process has asked for the outcome in vain. */
  attempts: number;
  /** Null while an attempt waits for its turn, and where another process asks. */
  nextAttemptAt: string | null;
};

export type Unresolved = {
  /**
   * The operation ended here without a recorded outcome: its payment's retry schedule begins anew.
   * `payment` is the payment with the intent, where the intent is known to be stored: an equal
   * create joins it from now on.
   */
  add(paymentId: string, operationId: string, payment: LoadedPayment | undefined): void;
  /**
   * Begins the retry schedule of a payment that may have something unresolved. Of one that is only parked
   * nothing is known to be: where its stream was removed, the schedule ends.
   */
  track(paymentId: string, isOnlyParked?: boolean): void;
  /** The payment's stream was read or appended to: drops what has its outcome now. */
  update(paymentId: string, payment: LoadedPayment | undefined): void;
  /** Drops the payments, of those not named here, that another process has resolved. */
  dropResolved(stillUnresolved: ReadonlySet<string>): Promise<void>;
  /** The payment whose create is unresolved and equal, to be joined (gaps §7). */
  equalCreate(fingerprint: string): string | undefined;
  /**
   * How many payments are unresolved, and the age of the oldest in seconds; how many operations that
   * were resolved by hand are not confirmed, and how many the provider contradicts; how many of all
   * were sent to another provider than the one that is set.
   */
  metrics(): {
    count: number;
    oldestSeconds: number;
    unconfirmed: number;
    contradicted: number;
    atOtherProvider: number;
  };
  list(): UnresolvedOperation[];
  /**
   * Ends the retry schedules, and asks no further question but those that a request waits for. What
   * is unresolved stays so and is found again at the next start.
   */
  stopAsking(): void;
};

export type UnresolvedOptions = {
  paymentLog: Pick<PaymentLog, 'load' | 'peek'>;
  queues: Queues;
  inFlight: InFlight;
  /** Asks the provider and records, in the payment's queue (ask.ts). */
  resolve(paymentId: string, goOn: () => boolean): Promise<LoadedPayment | undefined>;
  /** Asks about what was resolved by hand, outside of the queue, and records (confirm.ts). */
  confirm(payment: LoadedPayment, goOn: () => boolean): Promise<LoadedPayment>;
  /** The names of the provider that is set. */
  providers: readonly string[];
  /** Waits between attempts, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  nowMs: () => number;
  logger: Pick<Logger, 'warn' | 'error'>;
};

/** What an attempt in vain is logged as, by the state of the payment's oldest operation. */
const STILL = {
  UNRESOLVED: 'the outcome is still unknown',
  UNCONFIRMED: 'the provider has not confirmed what was resolved by hand',
  CONTRADICTED: 'the provider still contradicts what is recorded',
} as const;

/** Somebody has to act on it; what was resolved by hand can wait for its confirmation. */
const isElsewhere = ({ otherProvider, state }: KnownOperation): boolean =>
  otherProvider !== undefined && state !== 'UNCONFIRMED';

const ELSEWHERE =
  'it was sent to another provider than the one that is set, and is not asked about: start with that one again, or payments resolve';

export const createUnresolved = (options: UnresolvedOptions): Unresolved => {
  const { paymentLog, queues, inFlight, resolve, confirm, delaysMs, nowMs, logger } = options;
  const { providers } = options;
  const index = createUnresolvedIndex(inFlight, providers);
  const onlyParked = new Set<string>();
  let stopped = false;

  const drop = (paymentId: string): void => {
    schedules.end(paymentId);
    onlyParked.delete(paymentId);
    inFlight.forget(paymentId);
    index.delete(paymentId);
  };

  const update: Unresolved['update'] = (paymentId, payment) => {
    if (payment === undefined || isDone(payment.state)) drop(paymentId);
    else if (index.has(paymentId)) index.put(payment);
  };

  const attempt = async (paymentId: string): Promise<Attempted> => {
    const goOn = () => !stopped;
    const resolving = queues.run(paymentId, () => resolve(paymentId, goOn));
    let payment = await resolving.catch((error: unknown) => {
      if (error instanceof StreamNotWhole && onlyParked.has(paymentId)) return undefined;
      throw error;
    });
    onlyParked.delete(paymentId);
    if (payment === undefined || isDone(payment.state)) return { kind: 'resolved' };
    index.put(payment);
    payment = await confirm(payment, goOn);
    update(paymentId, payment);
    if (isDone(payment.state)) return { kind: 'resolved' };
    const leftMs = inFlight.leftMs(payment);
    return leftMs > 0 && !index.has(paymentId)
      ? { kind: 'in flight', leftMs }
      : { kind: 'unresolved' };
  };

  const onFailed = (paymentId: string, { attempts, nextAttemptMs, error }: FailedAttempt): void => {
    const [oldest] = index.of(paymentId);
    const fields = {
      paymentId,
      attempts,
      nextAttemptSeconds: Math.round(nextAttemptMs / 1000),
      ...(oldest && {
        operation: oldest.operation,
        ageSeconds: Math.round((nowMs() - Date.parse(oldest.since)) / 1000),
      }),
    };
    const { otherProvider } = index.of(paymentId).find(isElsewhere) ?? {};
    if (otherProvider !== undefined)
      logger.error({ ...fields, sentTo: otherProvider, provider: providers[0] }, ELSEWHERE);
    else if (error === undefined) logger.warn(fields, STILL[oldest?.state ?? 'UNRESOLVED']);
    else
      logger.warn(
        { ...fields, err: error },
        'recovery could not ask the provider, or could not record its outcome',
      );
  };

  const schedules = createRetrySchedules({ delaysMs, nowMs, attempt, onFailed });

  /** True where all that is left to be asked about is being carried out by this process. */
  const isLive = (paymentId: string): boolean => {
    const state = paymentLog.peek(paymentId)?.state;
    const operations = unresolvedOperations(state);
    return (
      operations.length > 0 &&
      unconfirmedOperations(state).length === 0 &&
      operations.every(({ operationId }) => inFlight.isLive(operationId))
    );
  };

  return {
    add: (paymentId, operationId, payment) => {
      schedules.beginAnew(paymentId);
      if (schedules.get(paymentId) === undefined) return;
      inFlight.sawEnd(paymentId, operationId);
      if (payment !== undefined) index.put(payment);
    },
    track: (paymentId, isOnlyParked = false) => {
      if (isOnlyParked) onlyParked.add(paymentId);
      else onlyParked.delete(paymentId);
      // An operation that this process carries out is added by operate.ts if it stays unknown.
      if (!isLive(paymentId)) schedules.begin(paymentId);
    },
    update,
    dropResolved: async (stillUnresolved) => {
      for (const paymentId of index.paymentIds()) {
        if (stillUnresolved.has(paymentId)) continue;
        await queues.run(paymentId, async () => {
          const payment = await paymentLog.load(paymentId, 'store');
          if (isDone(payment?.state)) drop(paymentId);
        });
      }
    },
    equalCreate: index.createOf,
    metrics: () => {
      const inState = (state: KnownOperation['state']): KnownOperation[] =>
        index.all().filter((operation) => operation.state === state);
      const unresolved = inState('UNRESOLVED');
      const oldest = unresolved.reduce((least, { since }) => (since < least ? since : least), '9');
      const oldestSeconds = unresolved.length === 0 ? 0 : (nowMs() - Date.parse(oldest)) / 1000;
      return {
        count: new Set(unresolved.map(({ paymentId }) => paymentId)).size,
        oldestSeconds: Math.max(0, oldestSeconds),
        unconfirmed: inState('UNCONFIRMED').length,
        contradicted: inState('CONTRADICTED').length,
        atOtherProvider: index.all().filter(isElsewhere).length,
      };
    },
    list: () =>
      index.all().map((operation) => {
        const { attempts = 0, nextAttemptAtMs } = schedules.get(operation.paymentId) ?? {};
        const nextAttemptAt =
          nextAttemptAtMs === undefined ? null : new Date(nextAttemptAtMs).toISOString();
        return { ...operation, attempts, nextAttemptAt };
      }),
    stopAsking: () => {
      stopped = true;
      schedules.stop();
    },
  };
};
