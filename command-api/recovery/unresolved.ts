/**
 * The unresolved operations that this process knows: ended without an outcome in the log, or resolved by hand
 * and not confirmed by the provider. A schedule for each payment asks until the provider is definite.
 */
import { FOREIGN } from '../../shared/event-store/chain.ts';
import { asUnreadable, StreamNotWhole, UnreadableStream } from '../../shared/event-store/errors.ts';
import type { Budget } from '../../shared/http/request-budget.ts';
import {
  createOf,
  isOtherProvider,
  type PaymentState,
  type ResolutionRequest,
  unconfirmedOperations,
  unresolvedOperations,
} from '../../shared/payment/state.ts';
import type { ReadModelsReader } from '../../shared/read-models/port.ts';
import type { StartTimer } from '../../shared/runtime/back-off.ts';
import type { ListedOperation } from '../back-office/by-hand/contract.ts';
import { type InFlight, intentTimeOf, waitForInFlight } from '../in-flight.ts';
import type { LoadedPayment, PaymentLog } from '../payment-log.ts';
import { type AskDeps, confirmByAsking, resolveByAsking } from './ask.ts';
import {
  type Attempted,
  createRetrySchedules,
  type FailedAttempt,
  type Scheduled,
} from './retry-schedule.ts';

/** `nextAttemptAt`: null while an attempt waits for its turn, and where another process asks. */
export type UnresolvedOperation = Omit<ListedOperation, 'request'> & {
  request?: ResolutionRequest | undefined;
};
type KnownOperation = Omit<UnresolvedOperation, 'attempts' | 'nextAttemptAt'>;

const STILL = {
  UNRESOLVED: 'the outcome is still unknown',
  UNCONFIRMED: 'the provider has not confirmed what was resolved by hand',
  CONTRADICTED: 'the provider still contradicts what is recorded',
} as const;

const ELSEWHERE =
  'it was sent to another provider than the one that is set, and is not asked about: start with that one again, or payments resolve';

/** Without those that may run or wait for the shopper. `providers`: the names of the one that is set. */
const knownOperations = (
  payment: LoadedPayment,
  { mayRun, isWaiting }: Pick<InFlight, 'mayRun' | 'isWaiting'>,
  providers: readonly string[],
): KnownOperation[] =>
  [...unresolvedOperations(payment.state), ...unconfirmedOperations(payment.state)]
    .filter((one) => one.ended !== undefined || !(mayRun(payment, one) || isWaiting(one)))
    .map((one) => ({
      paymentId: payment.state.paymentId,
      merchantId: payment.state.merchantId,
      operation: one.kind,
      operationId: one.operationId,
      amountMinor: one.amount,
      currency: payment.state.currency,
      state: one.confirmation ?? 'UNRESOLVED',
      since: intentTimeOf(payment, one),
      otherProvider: isOtherProvider(one.provider, providers) ? one.provider : undefined,
      request: one.resolutionRequest,
    }));

const MINUTE_MS = 60_000;
/** Before each look whether the shopper was there (gaps §21); a start asks as about any operation. */
const LOOKS_MS = [MINUTE_MS];
const LOOKS_BESIDE_NOTICES_MS = [MINUTE_MS, 4 * MINUTE_MS, 10 * MINUTE_MS];

const isDone = (state: PaymentState | undefined): boolean =>
  unresolvedOperations(state).length + unconfirmedOperations(state).length === 0;

/** An operator has to act; what was resolved by hand can wait for its confirmation. */
const isElsewhere = ({ otherProvider, state }: KnownOperation): boolean =>
  otherProvider !== undefined && state !== 'UNCONFIRMED';

type Known = {
  operations: KnownOperation[];
  /** Of its create, while that is unresolved. */
  fingerprint?: string | undefined;
  /** Nothing says that it has something unresolved; its stream may be removed. */
  isOnlyParked?: boolean;
};

const metricsOf = (operations: readonly KnownOperation[], nowMs: number) => {
  const inState = (state: KnownOperation['state']): KnownOperation[] =>
    operations.filter((operation) => operation.state === state);
  const unresolved = inState('UNRESOLVED');
  const oldestMs = unresolved.reduce((ms, { since }) => Math.min(ms, Date.parse(since)), nowMs);
  return {
    count: new Set(unresolved.map(({ paymentId }) => paymentId)).size,
    oldestSeconds: (nowMs - oldestMs) / 1000,
    unconfirmed: inState('UNCONFIRMED').length,
    contradicted: inState('CONTRADICTED').length,
    atOtherProvider: operations.filter(isElsewhere).length,
  };
};

type UnresolvedDeps = AskDeps & {
  providers: readonly string[];
  givesNotices(merchantId: string): boolean;
  delaysMs: readonly number[];
  startTimer?: StartTimer;
};

const logFailed = (
  { logger, nowMs, providers }: UnresolvedDeps,
  paymentId: string,
  known: readonly KnownOperation[],
  { attempts, nextAttemptMs, error }: FailedAttempt,
): void => {
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

const knownOf = (
  { inFlight, providers }: Pick<UnresolvedDeps, 'inFlight' | 'providers'>,
  payment: LoadedPayment,
): Known => {
  const operations = knownOperations(payment, inFlight, providers);
  const isCreate = operations.some(
    ({ operation, state }) => operation === 'create' && state === 'UNRESOLVED',
  );
  const { identity } = createOf(payment.state);
  return { operations, fingerprint: isCreate ? identity.fingerprint : undefined };
};

/** How long the shopper may still come; undefined where none is waited for. */
const waitsMsOf = ({ inFlight, nowMs }: AskDeps, { state }: LoadedPayment) => {
  const { waitsUntil } = unresolvedOperations(state).find(inFlight.isWaiting) ?? {};
  return waitsUntil === undefined ? undefined : Date.parse(waitsUntil) - nowMs();
};

/** Another client began the stream (gaps §29): no operation of ours is in it. */
const isForeign = (error: unknown): boolean =>
  error instanceof UnreadableStream && error.before.length === 0 && error.why === FOREIGN;

const attempt = async (
  deps: UnresolvedDeps,
  schedule: Scheduled<Known>,
  goOn: () => boolean,
): Promise<Attempted<Known>> => {
  const { paymentId } = schedule;
  const resolving = deps.queues.run(paymentId, () => resolveByAsking(deps, paymentId, goOn));
  const resolved = await resolving.catch((error: unknown) => {
    const isGone = error instanceof StreamNotWhole && schedule.known.isOnlyParked;
    if (isGone || isForeign(error)) return undefined;
    throw error;
  });
  if (resolved === undefined) return { kind: 'resolved' };
  const waitsMs = waitsMsOf(deps, resolved);
  if (waitsMs !== undefined)
    return { kind: 'waiting', leftMs: waitsMs, known: knownOf(deps, resolved) };
  const payment = await confirmByAsking(deps, resolved, goOn);
  if (isDone(payment.state)) return { kind: 'resolved' };
  const known = knownOf(deps, payment);
  const leftMs = deps.inFlight.leftMs(payment);
  return leftMs > 0 ? { kind: 'too early', leftMs, known } : { kind: 'unresolved', known };
};

export const createUnresolved = (deps: UnresolvedDeps) => {
  const { paymentLog, queues, inFlight, nowMs } = deps;
  const schedules = createRetrySchedules<Known>({
    ...deps,
    looksMs: (merchant) => (deps.givesNotices(merchant) ? LOOKS_BESIDE_NOTICES_MS : LOOKS_MS),
    unknown: { operations: [] },
    attempt: (schedule, goOn) => attempt(deps, schedule, goOn),
    onFailed: (paymentId, failed, { operations }) => logFailed(deps, paymentId, operations, failed),
  });

  const note = (paymentId: string, payment: LoadedPayment): void => {
    const schedule = schedules.all.get(paymentId);
    if (schedule !== undefined) schedule.known = knownOf(deps, payment);
  };

  const update = (paymentId: string, payment?: LoadedPayment): void => {
    if (payment === undefined || isDone(payment.state)) schedules.end(paymentId);
    else note(paymentId, payment);
  };

  const resolve = async (paymentId: string): Promise<LoadedPayment | undefined> => {
    const payment = await resolveByAsking(deps, paymentId, () => true);
    update(paymentId, payment);
    return payment;
  };

  const list = (): UnresolvedOperation[] =>
    [...schedules.all.values()].flatMap(({ known, attempts, nextAttemptAtMs }) => {
      const nextAttemptAt =
        nextAttemptAtMs === undefined ? null : new Date(nextAttemptAtMs).toISOString();
      return known.operations.map((operation) => ({ ...operation, attempts, nextAttemptAt }));
    });

  return {
    /** An operation ended here without a recorded outcome. An equal create joins `payment` from now on. */
    add: (paymentId: string, operationId: string, payment: LoadedPayment | undefined): void => {
      const waitsMs = payment && waitsMsOf(deps, payment);
      schedules.beginAnew(paymentId, payment?.state.merchantId ?? '', waitsMs);
      inFlight.sawEnd(operationId);
      if (payment !== undefined) note(paymentId, payment);
    },
    track: (paymentId: string, isOnlyParked = false, merchantId = ''): void => {
      // operate.ts adds what a live call leaves unknown; the next sweep looks again at the others.
      const operations = unresolvedOperations(paymentLog.peek(paymentId)?.state);
      const isLive = operations.some(({ operationId }) => inFlight.isLive(operationId));
      if (!isLive) schedules.begin(paymentId, merchantId);
      const schedule = schedules.all.get(paymentId);
      if (schedule !== undefined) schedule.known = { ...schedule.known, isOnlyParked };
    },
    update,
    resolve,
    /** The same once no call runs on it. Throws BudgetSpent. */
    resolveInTurn: (paymentId: string, budget: Budget): Promise<LoadedPayment | undefined> =>
      queues.run(paymentId, async () => {
        const payment = await waitForInFlight(deps, paymentId, 'store', budget);
        const isOpen = unresolvedOperations(payment?.state).length > 0;
        return isOpen ? resolve(paymentId) : payment;
      }),
    dropResolved: async (stillUnresolved: ReadonlySet<string>): Promise<void> => {
      for (const { paymentId } of list()) {
        if (stillUnresolved.has(paymentId)) continue;
        await queues.run(paymentId, async () => {
          const payment = await paymentLog.load(paymentId, 'store');
          if (isDone(payment?.state)) schedules.end(paymentId);
        });
      }
    },
    all: schedules.all as ReadonlyMap<string, Readonly<Scheduled<Known>>>,
    metrics: () => metricsOf(list(), nowMs()),
    list,
    askAboutAll: schedules.attemptAll,
    /** Only requests still ask. The next start finds what is unresolved. */
    stopAsking: schedules.stop,
  };
};

export type Unresolved = ReturnType<typeof createUnresolved>;

type ListingDeps = {
  paymentLog: Pick<PaymentLog, 'load'>;
  inFlight: Pick<InFlight, 'mayRun' | 'isWaiting'>;
  unresolved: Pick<Unresolved, 'list'>;
  providers: readonly string[];
};

const LISTED_MAX = 1_000;

/** Those of this process, and of others as the read models list them. */
export const listUnresolved = async (
  deps: ListingDeps,
  readModels: Pick<ReadModelsReader, 'unresolved'>,
  merchantId: string,
): Promise<UnresolvedOperation[]> => {
  const isTheirs = (one: { merchantId: string }): boolean =>
    merchantId === '*' || merchantId === one.merchantId;
  const found = deps.unresolved.list().filter(isTheirs);
  const known = new Set(found.map(({ paymentId }) => paymentId));
  // Without the read models it holds only what this process knows.
  const listed = await readModels.unresolved(LISTED_MAX).catch(() => []);
  for (const one of listed) {
    if (!isTheirs(one) || known.has(one.paymentId)) continue;
    const payment = await deps.paymentLog.load(one.paymentId, 'store').catch(asUnreadable);
    // Unreadable, it is parked, and `payments parked list` names it.
    if (payment === undefined || payment instanceof UnreadableStream) continue;
    for (const operation of knownOperations(payment, deps.inFlight, deps.providers))
      found.push({ ...operation, attempts: 0, nextAttemptAt: null });
  }
  return found.sort((a, b) => (a.since < b.since ? -1 : 1)).slice(0, LISTED_MAX);
};
