/**
 * A notice is a reason to ask, never the truth (gaps §15). Old authorizations are polled too, and the
 * merchant is told once of those that end soon (gaps §24).
 */
import { OTHER_PROVIDER, type PaymentQuestion } from '../../providers/port.ts';
import { RECORD_BUDGET_MS, startBudget } from '../../shared/http/request-budget.ts';
import type { LaterCommand } from '../../shared/payment/commands.ts';
import type { PaymentResponse } from '../../shared/payment/fields.ts';
import { authorizationOf, type PaymentState, providerOf } from '../../shared/payment/state.ts';
import { foldDamaged } from '../../shared/read-models/fold-damaged.ts';
import type {
  PaymentDocument,
  PaymentSearch,
  ReadModelsReader,
} from '../../shared/read-models/port.ts';
import {
  jittered,
  NARROW_JITTER,
  type StartTimer,
  startBackgroundTimer,
} from '../../shared/runtime/back-off.ts';
import { newOperationId } from '../../shared/runtime/ids.ts';
import type { CommandDeps } from '../deps.ts';
import { type LoadedPayment, paymentDone } from '../payment-log.ts';

/** `unknown`: the provider did not say. `at other provider`: not asked (ADR-0247). */
type AfterAsking = 'recorded' | 'nothing new' | 'unknown payment' | 'unknown' | 'at other provider';

export const questionAboutPayment = (state: PaymentState): PaymentQuestion => ({
  paymentId: state.paymentId,
  merchantId: state.merchantId,
  amount: state.amount,
  currency: state.currency,
  ...authorizationOf(state),
  provider: providerOf(state),
  refunds: state.operations
    .filter((one) => one.kind === 'refund' && one.ended?.outcome === 'APPROVED' && !one.failedLater)
    .map(({ operationId, amount }) => ({ operationId, amount })),
  observed: state.observedRefunds
    .filter(({ failedLater }) => !failedLater)
    .map(({ operationId, refundId }) => ({ operationId, refundId })),
});

const recordLater = async (
  { paymentLog }: CommandDeps,
  payment: LoadedPayment,
  result: LaterCommand['result'],
  actor = 'provider',
): Promise<LoadedPayment> => {
  const [{ id } = { id: '' }] = payment.events;
  const context = { actor, requestId: id, correlationId: id, causationId: id };
  const command = { kind: 'later', operationId: newOperationId(), result } as const;
  const { paymentId } = payment.state;
  const budget = startBudget(RECORD_BUDGET_MS);
  return paymentDone(command, await paymentLog.execute(paymentId, command, context, budget));
};

const askInTurn = async (deps: CommandDeps, paymentId: string): Promise<AfterAsking> => {
  let payment: LoadedPayment | undefined = await deps.unresolved.resolve(paymentId);
  if (payment === undefined) return 'unknown payment';
  const before = payment.events.length;
  const found = await deps.provider.laterResults(questionAboutPayment(payment.state));
  if (found.outcome === 'UNKNOWN')
    return found.reason === OTHER_PROVIDER ? 'at other provider' : 'unknown';
  for (const result of found.results) payment = await recordLater(deps, payment, result);
  const recorded = payment.events.slice(before).map(({ event }) => event.type);
  if (recorded.length === 0) return 'nothing new';
  deps.logger.info({ paymentId, recorded }, 'recorded later results from the provider');
  return 'recorded';
};

/** Safe to repeat. Throws what the event store throws. */
export const askAbout = (deps: CommandDeps, paymentId: string): Promise<AfterAsking> =>
  deps.queues.run(paymentId, () => askInTurn(deps, paymentId));

const logFailed = ({ logger }: CommandDeps, paymentId: string, error?: unknown): void =>
  logger.warn(
    { paymentId, err: error },
    'the provider could not be asked what became of the payment',
  );

/** Safe to repeat; undefined where it threw. Never throws. */
export const askAndLog = async (
  deps: CommandDeps,
  paymentId: string,
): Promise<AfterAsking | undefined> => {
  try {
    const found = await askAbout(deps, paymentId);
    if (found === 'unknown') logFailed(deps, paymentId);
    return found;
  } catch (error) {
    logFailed(deps, paymentId, error);
    return undefined;
  }
};

export const onNotice = async (deps: CommandDeps, paymentId: string): Promise<void> => {
  const found = await askAndLog(deps, paymentId);
  if (found === 'at other provider') logFailed(deps, paymentId);
};

const tellExpiring = (deps: CommandDeps, paymentId: string): Promise<unknown> =>
  deps.queues.run(paymentId, async () => {
    const payment = await deps.paymentLog.load(paymentId, 'store');
    const result = { kind: 'AUTHORIZATION_EXPIRING' } as const;
    if (payment !== undefined) await recordLater(deps, payment, result, 'service');
  });

const ELSEWHERE =
  'old authorizations were made at another provider than the one that is set, and are not asked about: they may have run out there';
const NOT_NOTICED = 'authorization-expiring event not recorded yet';
const NOTICE_MS = 48 * 3_600_000;
const FIRST_MS = 60_000;
const EVERY_MS = 3_600_000;
const PAGE = 100;

export const watchOldAuthorizations = (
  deps: CommandDeps,
  readModels: Pick<ReadModelsReader, 'search'>,
  startTimer: StartTimer = startBackgroundTimer,
): { stop(): void } => {
  let stopped = false;
  let cancel = (): void => undefined;

  const authorizations = async function* (): AsyncGenerator<PaymentDocument> {
    let after: PaymentSearch['after'];
    do {
      const search: PaymentSearch = { status: 'AUTHORIZED', after };
      const { documents, searchedTo } = await readModels.search(search, PAGE);
      for (const document of await foldDamaged(deps.store, search, documents)) {
        if (stopped) return;
        yield document;
      }
      after = searchedTo;
    } while (after !== undefined);
  };

  const lookAtAll = async (): Promise<void> => {
    const nowMs = deps.nowMs();
    let elsewhere = 0;
    for await (const { paymentId, body } of authorizations()) {
      const { createdAt, authorizationExpiresAt: ends }: PaymentResponse = JSON.parse(body);
      const isOld = nowMs - Date.parse(createdAt) > deps.provider.authorizationMsMax;
      if (isOld && (await askAndLog(deps, paymentId)) === 'at other provider') elsewhere += 1;
      const leftMs = ends === undefined ? 0 : Date.parse(ends) - nowMs;
      if (leftMs <= 0 || leftMs > NOTICE_MS) continue;
      await tellExpiring(deps, paymentId).catch((error: unknown) =>
        deps.logger.warn({ paymentId, err: error }, NOT_NOTICED),
      );
    }
    // One line for all: they stay AUTHORIZED as long as another provider is set.
    if (elsewhere > 0) deps.logger.warn({ payments: elsewhere }, ELSEWHERE);
  };
  const round = async (): Promise<void> => {
    await lookAtAll().catch((error: unknown) =>
      deps.logger.warn({ err: error }, 'authorizations could not all be looked at'),
    );
    if (!stopped) cancel = startTimer(() => void round(), jittered(EVERY_MS, NARROW_JITTER));
  };
  cancel = startTimer(() => void round(), jittered(FIRST_MS, NARROW_JITTER));
  return {
    stop: () => {
      stopped = true;
      cancel();
    },
  };
};
