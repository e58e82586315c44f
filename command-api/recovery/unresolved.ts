/**
 * What this process knows to be unresolved: operations whose intent is stored, whose call has
 * ended, and whose outcome is not recorded. Each of their payments has a retry schedule, by which
 * the provider is asked until the outcome is known (ask.ts).
 */
import { unresolvedOperations } from '../../shared/payment/state.ts';
import type { InFlight, Queues } from '../in-flight.ts';
import type { LoadedPayment, PaymentLog } from '../payment-log.ts';
import { type Attempted, createRetrySchedules, type FailedAttempt } from './retry-schedule.ts';
import { createUnresolvedIndex, type KnownOperation } from './unresolved-index.ts';

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
  /** Begins the retry schedule of a payment that may have something unresolved. */
  track(paymentId: string): void;
  /** The payment's stream was read or appended to: drops what has its outcome now. */
  update(paymentId: string, payment: LoadedPayment | undefined): void;
  /** Drops the payments, of those not named here, that another process has resolved. */
  dropResolved(stillUnresolved: ReadonlySet<string>): Promise<void>;
  /** The payment whose create is unresolved and equal, to be joined (gaps §7). */
  equalCreate(fingerprint: string): string | undefined;
  /** How many payments are unresolved, and the age of the oldest in seconds. */
  metrics(): { count: number; oldestSeconds: number };
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
  /** Waits between attempts, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  nowMs: () => number;
  logger: { warn(fields: object, message: string): void };
};

export const createUnresolved = (options: UnresolvedOptions): Unresolved => {
  const { paymentLog, queues, inFlight, resolve, delaysMs, nowMs, logger } = options;
  const index = createUnresolvedIndex(inFlight);
  let stopped = false;

  const drop = (paymentId: string): void => {
    schedules.end(paymentId);
    inFlight.forget(paymentId);
    index.delete(paymentId);
  };

  const update: Unresolved['update'] = (paymentId, payment) => {
    if (payment === undefined || unresolvedOperations(payment.state).length === 0) drop(paymentId);
    else if (index.has(paymentId)) index.put(payment);
  };

  const attempt = async (paymentId: string): Promise<Attempted> => {
    const payment = await queues.run(paymentId, () => resolve(paymentId, () => !stopped));
    if (payment === undefined || unresolvedOperations(payment.state).length === 0)
      return { kind: 'resolved' };
    index.put(payment);
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
    if (error === undefined) logger.warn(fields, 'the outcome is still unknown');
    else
      logger.warn(
        { ...fields, err: error },
        'recovery could not ask the provider, or could not record its outcome',
      );
  };

  const schedules = createRetrySchedules({ delaysMs, nowMs, attempt, onFailed });

  /** True where every operation without an outcome is being carried out by this process. */
  const isLive = (paymentId: string): boolean => {
    const operations = unresolvedOperations(paymentLog.peek(paymentId)?.state);
    return (
      operations.length > 0 && operations.every(({ operationId }) => inFlight.isLive(operationId))
    );
  };

  return {
    add: (paymentId, operationId, payment) => {
      schedules.beginAnew(paymentId);
      if (schedules.get(paymentId) === undefined) return;
      inFlight.sawEnd(paymentId, operationId);
      if (payment !== undefined) index.put(payment);
    },
    track: (paymentId) => {
      // An operation that this process carries out is added by operate.ts if it stays unknown.
      if (!isLive(paymentId)) schedules.begin(paymentId);
    },
    update,
    dropResolved: async (stillUnresolved) => {
      for (const paymentId of index.paymentIds()) {
        if (stillUnresolved.has(paymentId)) continue;
        await queues.run(paymentId, async () => {
          const payment = await paymentLog.load(paymentId, 'store');
          if (unresolvedOperations(payment?.state).length === 0) drop(paymentId);
        });
      }
    },
    equalCreate: index.createOf,
    metrics: () => {
      const since = index.all().map((operation) => operation.since);
      const oldest = since.reduce((least, time) => (time < least ? time : least), '9');
      const oldestSeconds = since.length === 0 ? 0 : (nowMs() - Date.parse(oldest)) / 1000;
      return { count: index.paymentIds().length, oldestSeconds: Math.max(0, oldestSeconds) };
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
