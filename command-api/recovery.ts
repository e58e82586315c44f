/**
 * Ends what was left open (decisions §7): asks the provider for the outcome of an intent that has
 * none, fences what was never carried out, and records the answer. It never sends an operation
 * again and never turns "unknown" into "failed". Everything here runs in the payment's queue, so
 * never beside a live call.
 */
import type { EventContext } from '../shared/event-store/port.ts';
import type { Outcome } from '../shared/payment/commands.ts';
import { type Operation, openOperations } from '../shared/payment/state.ts';
import { startBudget } from './budget.ts';
import type { LoadedPayment, PaymentLog } from './execute.ts';
import type { OperationAnswer, OperationQuestion, Provider } from './provider/port.ts';
import type { Queues } from './queues.ts';

export type Recovery = {
  /**
   * Asks about each open operation and records what is definite. Call it in the payment's queue.
   * Returns the payment as it is afterwards, read from the store.
   */
  settle(paymentId: string): Promise<LoadedPayment>;
  /** Records an outcome that the provider gave. Call it in the payment's queue. */
  record(
    payment: LoadedPayment,
    operationId: string,
    outcome: Outcome,
    by?: 'recovery',
  ): Promise<LoadedPayment>;
  /** Begins the ladder for a payment, with a first try at once. */
  track(paymentId: string): void;
  /** The unresolved create of an equal request, to be joined (decisions §7). */
  unresolvedCreate(fingerprint: string): string | undefined;
  /** How many payments are unresolved, and the age of the oldest in seconds. */
  unresolved(): { count: number; oldestSeconds: number };
  /** Ends the ladders; what is open stays open and is found again at the next start. */
  stop(): void;
};

export type RecoveryOptions = {
  log: PaymentLog;
  provider: Provider;
  queues: Queues;
  /** Waits between tries, in milliseconds; after the last one, hourly (`RECOVERY_DELAYS_MS`). */
  delaysMs: readonly number[];
  nowMs: () => number;
  logger: {
    info(fields: object, message: string): void;
    warn(fields: object, message: string): void;
  };
};

const HOUR_MS = 3_600_000;
/** How many payments are asked about at once. */
const AT_ONCE_MAX = 8;
/** How long the store may take to accept an outcome; the request's own budget does not bound it. */
const RECORD_BUDGET_MS = 10_000;

type Ladder = { tries: number; since: number; timer?: NodeJS.Timeout; create?: string };

/** What an answer to a live call or to a question says for good; undefined while it is unknown. */
export const outcomeOf = (
  answer: OperationAnswer | { outcome: 'FENCED' } | { outcome: 'NOT_FOUND' },
): Outcome | undefined => {
  switch (answer.outcome) {
    case 'APPROVED':
      return { result: 'APPROVED', providerReference: answer.providerReference };
    case 'DECLINED':
      return {
        result: 'DECLINED',
        failureCode: answer.failureCode,
        providerFailureCode: answer.providerFailureCode,
      };
    case 'NOT_SENT':
      return { result: 'NOT_SENT' };
    case 'FENCED':
      return { result: 'FENCED' };
    case 'NOT_FOUND':
    case 'UNKNOWN':
      return undefined;
  }
};

export const createRecovery = (options: RecoveryOptions): Recovery => {
  const { log, provider, queues, delaysMs, nowMs, logger } = options;
  const ladders = new Map<string, Ladder>();
  /** Fingerprint of unresolved creates -> their payments: equal ones can have run side by side. */
  const creates = new Map<string, Set<string>>();
  const waiting: string[] = [];
  let running = 0;
  let stopped = false;

  const ask = async (question: OperationQuestion): Promise<Outcome | undefined> => {
    const found = await provider.lookUp(question);
    // A bare "not found" decides nothing: the operation may still be on its way.
    if (found.outcome !== 'NOT_FOUND') return outcomeOf(found);
    return outcomeOf(await provider.fence(question));
  };

  const record: Recovery['record'] = async (payment, operationId, outcome, by) => {
    const { state } = payment;
    if (state.status === 'NONE') throw new Error('an outcome for a payment that is not there');
    const intent = payment.events.find(({ event }) => event.data.operationId === operationId);
    if (intent === undefined) throw new Error('an outcome without its intent');
    const context: EventContext = {
      ...intent.context,
      actor: by ?? intent.context.actor,
      causationId: intent.id,
    };
    const command = { kind: 'record', operationId, outcome } as const;
    const executed = await log.execute(
      state.paymentId,
      command,
      context,
      startBudget(RECORD_BUDGET_MS),
    );
    return executed.payment;
  };

  const settleOne = async (payment: LoadedPayment, open: Operation): Promise<LoadedPayment> => {
    if (payment.state.status === 'NONE') return payment;
    const { paymentId, currency } = payment.state;
    const { operationId, amount, kind } = open;
    const outcome = await ask({ operationId, amount, currency });
    if (outcome === undefined) return payment;
    const settled = await record(payment, operationId, outcome, 'recovery');
    logger.info({ paymentId, operation: kind, outcome: outcome.result }, 'outcome recovered');
    return settled;
  };

  const settle: Recovery['settle'] = async (paymentId) => {
    let payment = await log.load(paymentId, 'store');
    for (const open of openOperations(payment.state)) payment = await settleOne(payment, open);
    if (openOperations(payment.state).length === 0) forget(paymentId);
    return payment;
  };

  const forget = (paymentId: string): void => {
    const ladder = ladders.get(paymentId);
    if (ladder === undefined) return;
    clearTimeout(ladder.timer);
    ladders.delete(paymentId);
    if (ladder.create === undefined) return;
    const equal = creates.get(ladder.create);
    equal?.delete(paymentId);
    if (equal?.size === 0) creates.delete(ladder.create);
  };

  const climb = (paymentId: string, ladder: Ladder): void => {
    const delayMs = delaysMs[ladder.tries - 1] ?? HOUR_MS;
    const jitteredMs = delayMs * (0.9 + Math.random() * 0.2);
    ladder.timer = setTimeout(() => enqueue(paymentId), jitteredMs).unref();
  };

  const attempt = async (paymentId: string): Promise<void> => {
    const ladder = ladders.get(paymentId);
    if (ladder === undefined || stopped) return;
    ladder.tries += 1;
    try {
      const payment = await queues.run(paymentId, () => settle(paymentId));
      noteCreate(paymentId, payment);
    } catch (error) {
      logger.warn({ paymentId, err: error }, 'recovery could not ask or record; it tries again');
    }
    if (ladders.get(paymentId) === ladder && !stopped) climb(paymentId, ladder);
  };

  const enqueue = (paymentId: string): void => {
    waiting.push(paymentId);
    drain();
  };

  const drain = (): void => {
    while (running < AT_ONCE_MAX) {
      const paymentId = waiting.shift();
      if (paymentId === undefined) return;
      running += 1;
      void attempt(paymentId).finally(() => {
        running -= 1;
        drain();
      });
    }
  };

  const noteCreate = (paymentId: string, payment: LoadedPayment | undefined): void => {
    const open = payment === undefined ? undefined : openOperations(payment.state)[0];
    const ladder = ladders.get(paymentId);
    if (open?.kind !== 'create' || ladder === undefined) return;
    ladder.create = open.identity.fingerprint;
    creates.set(ladder.create, (creates.get(ladder.create) ?? new Set()).add(paymentId));
  };

  const track: Recovery['track'] = (paymentId) => {
    if (stopped || ladders.has(paymentId)) return;
    ladders.set(paymentId, { tries: 0, since: nowMs() });
    noteCreate(paymentId, log.peek(paymentId));
    enqueue(paymentId);
  };

  return {
    settle,
    record,
    track,
    unresolvedCreate: (fingerprint) => creates.get(fingerprint)?.values().next().value,
    unresolved: () => {
      let oldest = Number.POSITIVE_INFINITY;
      for (const { since } of ladders.values()) oldest = Math.min(oldest, since);
      const oldestSeconds = ladders.size === 0 ? 0 : (nowMs() - oldest) / 1000;
      return { count: ladders.size, oldestSeconds };
    },
    stop: () => {
      stopped = true;
      for (const paymentId of [...ladders.keys()]) forget(paymentId);
    },
  };
};
