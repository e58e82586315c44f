/**
 * What this process knows to be unresolved: the call has ended, no outcome is recorded. Each
 * payment has a schedule by which the provider is asked until it is definite, also after a word by
 * hand.
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

export type UnresolvedOperation = KnownOperation & {
  /** How often this process has asked in vain. */
  attempts: number;
  /** Null while an attempt waits for its turn, and where another process asks. */
  nextAttemptAt: string | null;
};

export type UnresolvedOptions = {
  paymentLog: Pick<PaymentLog, 'load' | 'peek'>;
  queues: Queues;
  inFlight: InFlight;
  resolve(paymentId: string, goOn: () => boolean): Promise<LoadedPayment | undefined>;
  confirm(payment: LoadedPayment, goOn: () => boolean): Promise<LoadedPayment>;
  providers: readonly string[];
  delaysMs: readonly number[];
  nowMs: () => number;
  logger: Pick<Logger, 'warn' | 'error'>;
};

const STILL = {
  UNRESOLVED: 'the outcome is still unknown',
  UNCONFIRMED: 'the provider has not confirmed what was resolved by hand',
  CONTRADICTED: 'the provider still contradicts what is recorded',
} as const;

/** An operator has to act; what was resolved by hand can wait for its confirmation. */
const isElsewhere = ({ otherProvider, state }: KnownOperation): boolean =>
  otherProvider !== undefined && state !== 'UNCONFIRMED';

const ELSEWHERE =
  'it was sent to another provider than the one that is set, and is not asked about: start with that one again, or payments resolve';

export const createUnresolved = (options: UnresolvedOptions) => {
  const { paymentLog, queues, inFlight, providers, delaysMs, nowMs, logger } = options;
  const index = createUnresolvedIndex(inFlight, providers);
  const onlyParked = new Set<string>();
  let stopped = false;

  const drop = (paymentId: string): void => {
    schedules.end(paymentId);
    onlyParked.delete(paymentId);
    inFlight.forget(paymentId);
    index.delete(paymentId);
  };

  /** The payment's stream was read or appended to: drops what has its outcome now. */
  const update = (paymentId: string, payment: LoadedPayment | undefined): void => {
    if (payment === undefined || isDone(payment.state)) drop(paymentId);
    else if (index.has(paymentId)) index.put(payment);
  };

  const attempt = async (paymentId: string): Promise<Attempted> => {
    const goOn = () => !stopped;
    const resolving = queues.run(paymentId, () => options.resolve(paymentId, goOn));
    let payment = await resolving.catch((error: unknown) => {
      if (error instanceof StreamNotWhole && onlyParked.has(paymentId)) return undefined;
      throw error;
    });
    onlyParked.delete(paymentId);
    if (payment === undefined || isDone(payment.state)) return { kind: 'resolved' };
    index.put(payment);
    payment = await options.confirm(payment, goOn);
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

  /** True where this process is carrying out all that is left to ask about. */
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
    /** An operation ended here without a recorded outcome. An equal create joins `payment` from now on. */
    add: (paymentId: string, operationId: string, payment: LoadedPayment | undefined): void => {
      schedules.beginAnew(paymentId);
      if (schedules.get(paymentId) === undefined) return;
      inFlight.sawEnd(paymentId, operationId);
      if (payment !== undefined) index.put(payment);
    },
    /** `isOnlyParked`: nothing says that it has something unresolved; its stream may be removed. */
    track: (paymentId: string, isOnlyParked = false): void => {
      if (isOnlyParked) onlyParked.add(paymentId);
      else onlyParked.delete(paymentId);
      // operate.ts adds it if its outcome stays unknown.
      if (!isLive(paymentId)) schedules.begin(paymentId);
    },
    update,
    /** Drops payments, of those not named here, that another process has resolved. */
    dropResolved: async (stillUnresolved: ReadonlySet<string>): Promise<void> => {
      for (const paymentId of index.paymentIds()) {
        if (stillUnresolved.has(paymentId)) continue;
        await queues.run(paymentId, async () => {
          const payment = await paymentLog.load(paymentId, 'store');
          if (isDone(payment?.state)) drop(paymentId);
        });
      }
    },
    /** The payment that an equal create joins (gaps §7). */
    equalCreate: index.createOf,
    /** `count` is of unresolved payments, the others are of operations. */
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
    list: (): UnresolvedOperation[] =>
      index.all().map((operation) => {
        const { attempts = 0, nextAttemptAtMs } = schedules.get(operation.paymentId) ?? {};
        const nextAttemptAt =
          nextAttemptAtMs === undefined ? null : new Date(nextAttemptAtMs).toISOString();
        return { ...operation, attempts, nextAttemptAt };
      }),
    /** Ends the schedules: only requests still ask. The next start finds what is unresolved. */
    stopAsking: (): void => {
      stopped = true;
      schedules.stop();
    },
  };
};

export type Unresolved = ReturnType<typeof createUnresolved>;
