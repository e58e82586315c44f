/**
 * The operations that this process knows to be unresolved: their call has ended without an outcome
 * in the log, or an operator resolved them and the provider has not confirmed it. A schedule for
 * each payment asks the provider until it is definite.
 */
import { StreamNotWhole } from '../../shared/event-store/errors.ts';
import {
  isOtherProvider,
  type Operation,
  type OperationKind,
  type PaymentState,
  type ResolutionRequest,
  unconfirmedOperations,
  unresolvedOperations,
} from '../../shared/payment/payment-state.ts';
import type { StartTimer } from '../../shared/runtime/back-off.ts';
import { type InFlight, intentTimeOf, waitForInFlight } from '../in-flight.ts';
import type { LoadedPayment } from '../loaded-payment.ts';
import type { Budget } from '../request-budget.ts';
import { type AskDeps, confirmByAsking, resolveByAsking } from './ask.ts';
import { type Attempted, createRetrySchedules, type FailedAttempt } from './retry-schedule.ts';

/** UNCONFIRMED: resolved by hand. CONTRADICTED: the provider says other than the log (ADR-0099). */
export const OPERATION_STATES = ['UNRESOLVED', 'UNCONFIRMED', 'CONTRADICTED'] as const;

type KnownOperation = {
  paymentId: string;
  merchantId: string;
  state: (typeof OPERATION_STATES)[number];
  operation: OperationKind;
  operationId: string;
  amountMinor: number;
  currency: string;
  since: string;
  /** Another provider was sent it than the one that is set: it is not asked. */
  otherProvider?: string;
  request?: ResolutionRequest | undefined;
};

export type UnresolvedOperation = KnownOperation & {
  attempts: number;
  /** Null while an attempt waits for its turn, and where another process asks. */
  nextAttemptAt: string | null;
};

const STILL = {
  UNRESOLVED: 'the outcome is still unknown',
  UNCONFIRMED: 'the provider has not confirmed what was resolved by hand',
  CONTRADICTED: 'the provider still contradicts what is recorded',
} as const;

const ELSEWHERE =
  'it was sent to another provider than the one that is set, and is not asked about: start with that one again, or payments resolve';

const knownOf = (
  payment: LoadedPayment,
  operation: Operation,
  providers: readonly string[],
): KnownOperation => ({
  paymentId: payment.state.paymentId,
  merchantId: payment.state.merchantId,
  operation: operation.kind,
  operationId: operation.operationId,
  amountMinor: operation.amountMinor,
  currency: payment.state.currency,
  state: operation.confirmation ?? 'UNRESOLVED',
  since: intentTimeOf(payment, operation),
  ...(isOtherProvider(operation.provider, providers) && { otherProvider: operation.provider }),
  ...(operation.resolutionRequest && { request: operation.resolutionRequest }),
});

/**
 * Leaves out operations that may be in flight, or wait for the shopper. `providers`: the names of the
 * one that is set.
 */
export const knownOperations = (
  payment: LoadedPayment,
  { mayRun, isWaiting }: Pick<InFlight, 'mayRun' | 'isWaiting'>,
  providers: readonly string[],
): KnownOperation[] =>
  [...unresolvedOperations(payment.state), ...unconfirmedOperations(payment.state)]
    .filter((one) => one.ended !== undefined || !(mayRun(payment, one) || isWaiting(one)))
    .map((one) => knownOf(payment, one, providers));

/** How often the provider is asked whether the shopper was there (gaps §21). */
const LOOK_MS = 60_000;

const isDone = (state: PaymentState | undefined): boolean =>
  unresolvedOperations(state).length + unconfirmedOperations(state).length === 0;

/** An operator has to act; what was resolved by hand can wait for its confirmation. */
const isElsewhere = ({ otherProvider, state }: KnownOperation): boolean =>
  otherProvider !== undefined && state !== 'UNCONFIRMED';

const createIndex = (inFlight: InFlight, providers: readonly string[]) => {
  const byPayment = new Map<string, KnownOperation[]>();
  const byFingerprint = new Map<string, Set<string>>();
  const fingerprints = new Map<string, string>();

  const remove = (paymentId: string): void => {
    byPayment.delete(paymentId);
    const fingerprint = fingerprints.get(paymentId) ?? '';
    fingerprints.delete(paymentId);
    const equal = byFingerprint.get(fingerprint);
    equal?.delete(paymentId);
    if (equal?.size === 0) byFingerprint.delete(fingerprint);
  };

  const put = (payment: LoadedPayment): void => {
    const { paymentId, operations } = payment.state;
    remove(paymentId);
    const known = knownOperations(payment, inFlight, providers);
    if (known.length === 0) return;
    byPayment.set(paymentId, known);
    const isUnresolvedCreate = known.some(
      ({ operation, state }) => operation === 'create' && state === 'UNRESOLVED',
    );
    const fingerprint = operations[0]?.identity.fingerprint;
    if (!isUnresolvedCreate || fingerprint === undefined) return;
    fingerprints.set(paymentId, fingerprint);
    byFingerprint.set(fingerprint, (byFingerprint.get(fingerprint) ?? new Set()).add(paymentId));
  };

  return {
    put,
    remove,
    byPayment,
    of: (paymentId: string) => byPayment.get(paymentId) ?? [],
    all: () => [...byPayment.values()].flat(),
    createOf: (fingerprint: string) => byFingerprint.get(fingerprint)?.values().next().value,
  };
};

export const createUnresolved = (
  deps: AskDeps & {
    providers: readonly string[];
    delaysMs: readonly number[];
    startTimer?: StartTimer;
  },
) => {
  const { paymentLog, queues, inFlight, providers, nowMs, logger } = deps;
  const index = createIndex(inFlight, providers);
  const onlyParked = new Set<string>();
  let stopped = false;

  const drop = (paymentId: string): void => {
    schedules.end(paymentId);
    onlyParked.delete(paymentId);
    inFlight.forget(paymentId);
    index.remove(paymentId);
  };

  const update = (paymentId: string, payment: LoadedPayment | undefined): void => {
    if (payment === undefined || isDone(payment.state)) drop(paymentId);
    else if (index.byPayment.has(paymentId)) index.put(payment);
  };

  const resolve = async (
    paymentId: string,
    goOn: () => boolean = () => true,
  ): Promise<LoadedPayment | undefined> => {
    const payment = await resolveByAsking(deps, paymentId, goOn);
    update(paymentId, payment);
    return payment;
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
    const { waitsUntil } = unresolvedOperations(payment.state).find(inFlight.isWaiting) ?? {};
    if (waitsUntil !== undefined)
      return { kind: 'too early', leftMs: Math.min(LOOK_MS, Date.parse(waitsUntil) - nowMs()) };
    payment = await confirmByAsking(deps, payment, goOn);
    update(paymentId, payment);
    if (isDone(payment.state)) return { kind: 'resolved' };
    const leftMs = inFlight.leftMs(payment);
    return leftMs > 0 && !index.byPayment.has(paymentId)
      ? { kind: 'too early', leftMs }
      : { kind: 'unresolved' };
  };

  const onFailed = (paymentId: string, { attempts, nextAttemptMs, error }: FailedAttempt): void => {
    const known = index.of(paymentId);
    const [oldest] = known;
    const fields = {
      paymentId,
      attempts,
      nextAttemptSeconds: Math.round(nextAttemptMs / 1000),
      ...(oldest && {
        operation: oldest.operation,
        ageSeconds: Math.round((nowMs() - Date.parse(oldest.since)) / 1000),
      }),
    };
    const { otherProvider } = known.find(isElsewhere) ?? {};
    if (otherProvider !== undefined)
      logger.error({ ...fields, sentTo: otherProvider, provider: providers[0] }, ELSEWHERE);
    else if (error === undefined) logger.warn(fields, STILL[oldest?.state ?? 'UNRESOLVED']);
    else
      logger.warn(
        { ...fields, err: error },
        'recovery could not ask the provider, or could not record its outcome',
      );
  };

  const schedules = createRetrySchedules({ ...deps, attempt, onFailed });

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
    resolve: (paymentId: string) => resolve(paymentId),
    /** The same once no call runs on it. Throws BudgetSpent. */
    resolveInTurn: (paymentId: string, budget: Budget): Promise<LoadedPayment | undefined> =>
      queues.run(paymentId, async () => {
        const payment = await waitForInFlight(deps, paymentId, 'store', budget);
        return unresolvedOperations(payment?.state).length > 0 ? resolve(paymentId) : payment;
      }),
    dropResolved: async (stillUnresolved: ReadonlySet<string>): Promise<void> => {
      for (const paymentId of [...index.byPayment.keys()]) {
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
      const now = nowMs();
      const olderOf = (oldest: number, { since }: KnownOperation): number =>
        Math.min(oldest, Date.parse(since));
      return {
        count: new Set(unresolved.map(({ paymentId }) => paymentId)).size,
        oldestSeconds: (now - unresolved.reduce(olderOf, now)) / 1000,
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
    /** Only requests still ask. The next start finds what is unresolved. */
    stopAsking: (): void => {
      stopped = true;
      schedules.stop();
    },
  };
};

export type Unresolved = ReturnType<typeof createUnresolved>;
