/**
 * The streams of payments, read and appended to: load, decide, append; again on a conflict of
 * revisions. The only loop around an append, and it holds no effect but the append itself (gaps §6).
 */
import { RevisionConflict } from '../shared/event-store/errors.ts';
import {
  asPaymentEvent,
  foldInSlices,
  type RecordedPaymentEvent,
} from '../shared/event-store/fold-stream.ts';
import type { EventContext, EventStore } from '../shared/event-store/port.ts';
import { contextOf } from '../shared/http/event-context.ts';
import type {
  Command,
  LaterCommand,
  OpenCommand,
  RecordCommand,
  ResolutionCommand,
  ResolveCommand,
} from '../shared/payment/commands.ts';
import { type Decision, decide } from '../shared/payment/decide.ts';
import { decideLater } from '../shared/payment/decide-later.ts';
import { decideResolution } from '../shared/payment/decide-resolution.ts';
import type { FinalOutcomeDetails, LaterResult } from '../shared/payment/outcome.ts';
import { streamOf } from '../shared/payment/payment-events.ts';
import { bytesOfPayment } from '../shared/payment/payment-response.ts';
import type { PaymentState } from '../shared/payment/payment-state.ts';
import { evolve } from '../shared/payment/state.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import { newOperationId } from '../shared/runtime/ids.ts';
import { append, newEvents } from './append-events.ts';
import {
  after,
  isIntentOf,
  knows,
  type LoadedPayment,
  notInLog,
  operationOf,
} from './loaded-payment.ts';
import { type Budget, BudgetSpent, startBudget } from './request-budget.ts';
import type { Sender } from './sender.ts';

/** Everything that leads to events of a payment. */
type AnyCommand = Command | ResolutionCommand | LaterCommand;

/** What an operator says of an operation's outcome (gaps §16). */
export type Word = Pick<ResolveCommand, 'outcome' | 'evidence' | 'withoutFence'>;

export type Executed =
  /** Appended; or nothing to append, for the operation was known already. */
  | { kind: 'done'; payment: LoadedPayment }
  /** `payment` is undefined for a create that the rules reject: nothing exists yet. */
  | (Exclude<Decision, { kind: 'events' }> & { payment: LoadedPayment | undefined });

export type PaymentLog = {
  /**
   * Reads the stream, or takes what this process last saw of it where the cache will do; undefined
   * where no such payment exists. Throws UnreadableStream and StoreUnavailable, and StreamNotWhole
   * where the store no longer has what this process saw.
   */
  load(paymentId: string, from: 'store' | 'cache'): Promise<LoadedPayment | undefined>;
  /** What this process last saw of the payment; undefined where it is not in the cache. */
  peek(paymentId: string): LoadedPayment | undefined;
  /**
   * Decides and appends. A rejection is only given from a state just read. Throws BudgetSpent when
   * conflicts outlast the budget, AppendOutcomeUnknown when an append's outcome stays unknown for as
   * long, and what else the store throws.
   */
  execute(
    paymentId: string,
    command: AnyCommand,
    context: EventContext,
    budget: Budget,
  ): Promise<Executed>;
  /**
   * Keeps what the provider has opened for a create. Throws OperationEnded where the operation has its
   * outcome, or another reference; and what the event store throws. Returns the payment as it is
   * afterwards.
   */
  recordOpened(
    payment: LoadedPayment,
    operationId: string,
    reference: string,
  ): Promise<LoadedPayment>;
  /**
   * Records the outcome of one operation; where another process was faster, its outcome stays. A fence
   * that was judged on `payment` is not recorded where the provider has opened something since: the
   * operation has no outcome then. Call it in the payment's queue. `by` is absent for the live
   * request. Returns the payment as it is afterwards. Throws what the event store throws.
   */
  recordOutcome(
    payment: LoadedPayment,
    operationId: string,
    outcome: FinalOutcomeDetails,
    by?: 'recovery',
  ): Promise<LoadedPayment>;
  /**
   * Records what the provider says later, once; nothing where it is recorded already, or cannot be now.
   * As recordOutcome else.
   */
  recordLater(payment: LoadedPayment, result: LaterResult): Promise<LoadedPayment>;
  /**
   * Stores an operator's word as a request, or, where another operator requested the same, as the
   * outcome (gaps §16). As recordOutcome else.
   */
  resolve(
    payment: LoadedPayment,
    operationId: string,
    operator: Sender,
    word: Word,
  ): Promise<LoadedPayment>;
  /** Records what the provider says of what was resolved by hand. As recordOutcome else. */
  confirm(
    payment: LoadedPayment,
    operationId: string,
    outcome: FinalOutcomeDetails,
  ): Promise<LoadedPayment>;
};

export type PaymentLogOptions = {
  store: EventStore;
  /** Wall clock in milliseconds; what it says is only ever stored as an event's time. */
  nowMs: () => number;
  onAppended: (events: readonly RecordedPaymentEvent[]) => void;
  onConflict: () => void;
  /** How many payments are kept in memory, and about how many bytes they may take together. */
  cachedPaymentsMax: number;
  cachedBytesMax: number;
};

/** What the provider has opened may not be used: the operation has its outcome, or another reference. */
export class OperationEnded extends Error {
  override name = 'OperationEnded';
}

/** The decision on a command; what is resolved by hand has rules of its own. */
const decided = (state: PaymentState | undefined, command: AnyCommand): Decision =>
  command.kind === 'later'
    ? { kind: 'events', events: state === undefined ? [] : decideLater(state, command) }
    : command.kind === 'resolve' || command.kind === 'confirm'
      ? { kind: 'events', events: decideResolution(state, command) }
      : decide(state, command);

/** Commands about what the payment has already. */
const isOnKnownOperation = ({ kind }: AnyCommand): boolean =>
  ['open', 'record', 'resolve', 'confirm', 'later'].includes(kind);

const BY_RECOVERY = { actor: 'recovery' };

/** How long the store may take to accept an outcome; the request's own budget does not bound it. */
const RECORD_BUDGET_MS = 10_000;

export const createPaymentLog = (options: PaymentLogOptions): PaymentLog => {
  const { store, nowMs, onAppended, onConflict, cachedPaymentsMax } = options;
  const bytes = { bytesMax: options.cachedBytesMax, bytesOf: bytesOfPayment };
  const cache = createBoundedMap<LoadedPayment>(cachedPaymentsMax, bytes);

  const remember = (paymentId: string, payment: LoadedPayment | undefined): void => {
    if (payment === undefined) return;
    // A slow read may come back after an append of this process: the longer stream is kept.
    const known = cache.peek(paymentId);
    if (known !== undefined && known.events.length > payment.events.length) return;
    cache.set(paymentId, payment);
  };

  const load: PaymentLog['load'] = async (paymentId, from) => {
    const cached = from === 'cache' ? cache.get(paymentId) : undefined;
    if (cached !== undefined) return cached;
    const known = cache.peek(paymentId);
    const events = await store.readStream(streamOf(paymentId));
    if (events.length === 0 && known !== undefined) throw notInLog(paymentId);
    const state = await foldInSlices(events, evolve);
    const payment = state && { events: events.map(asPaymentEvent), state };
    remember(paymentId, payment);
    return payment;
  };

  const afterAppend = (
    paymentId: string,
    before: LoadedPayment | undefined,
    appended: readonly RecordedPaymentEvent[],
  ): LoadedPayment => {
    const payment = after(before, appended);
    if (payment === undefined) throw new Error(`an append to payment ${paymentId} stored no event`);
    remember(paymentId, payment);
    return payment;
  };

  const execute: PaymentLog['execute'] = async (paymentId, command, context, budget) => {
    // A create knows its revision: the exact expectation protects it, not the read.
    let payment = command.kind === 'create' ? undefined : await load(paymentId, 'cache');
    let justRead = command.kind === 'create';
    // Dropped from the cache and read again meanwhile, the payment may be from before the intent.
    if (isOnKnownOperation(command) && !knows(payment, command.operationId)) {
      payment = await load(paymentId, 'store');
      justRead = true;
    }
    const tried = new Set<string>();
    for (;;) {
      const decision = decided(payment?.state, command);
      if (decision.kind !== 'events') {
        if (justRead) return { ...decision, payment };
      } else if (payment !== undefined && decision.events.length === 0) {
        if (isOnKnownOperation(command) || isIntentOf(payment, command.operationId, tried))
          return { kind: 'done', payment };
        if (justRead) return { kind: 'repeated', payment };
      } else {
        const events = newEvents(payment, decision.events, context, nowMs());
        for (const { id } of events) tried.add(id);
        try {
          const appended = await append(store, paymentId, payment, events, budget);
          const next = afterAppend(paymentId, payment, appended);
          onAppended(appended);
          return { kind: 'done', payment: next };
        } catch (error) {
          if (!(error instanceof RevisionConflict)) throw error;
          onConflict();
          if (budget.leftMs() === 0) throw new BudgetSpent();
        }
      }
      payment = await load(paymentId, 'store');
      justRead = true;
    }
  };

  /** Executes a command about a known operation, in the context of `by`, else of its intent. */
  const executeOn = async (
    payment: LoadedPayment,
    command: OpenCommand | RecordCommand | ResolutionCommand,
    by: Partial<EventContext> = {},
  ): Promise<LoadedPayment> => {
    const { operationId } = command;
    const intent = payment.events.find(({ event }) => event.data.operationId === operationId);
    if (intent === undefined)
      throw new Error(`operation ${operationId} has an outcome and no intent`);
    const context = { ...intent.context, ...by, causationId: intent.id };
    const budget = startBudget(RECORD_BUDGET_MS);
    const { paymentId } = payment.state;
    // Where more operations run at once than payments are kept, theirs are not read again for it.
    remember(paymentId, payment);
    const recorded = await execute(paymentId, command, context, budget);
    if (recorded.kind !== 'done')
      throw new Error(`the ${command.kind} of operation ${operationId} was ${recorded.kind}`);
    return recorded.payment;
  };

  return {
    load,
    peek: (paymentId) => cache.peek(paymentId),
    execute,
    recordOpened: async (payment, operationId, reference) => {
      const opened = await executeOn(payment, { kind: 'open', operationId, reference });
      const { ended, reference: kept } = operationOf(opened, operationId);
      if (ended !== undefined || kept !== reference) throw new OperationEnded(operationId);
      return opened;
    },
    recordOutcome: (payment, operationId, outcome, by) => {
      const judged = { judgedReference: operationOf(payment, operationId).reference };
      const command = { kind: 'record', operationId, ...judged, ...outcome } as const;
      return executeOn(payment, command, by && BY_RECOVERY);
    },
    recordLater: async (payment, result) => {
      const [{ id } = { id: '' }] = payment.events;
      const context = { actor: 'provider', requestId: id, correlationId: id, causationId: id };
      const command = { kind: 'later', operationId: newOperationId(), result } as const;
      const budget = startBudget(RECORD_BUDGET_MS);
      const recorded = await execute(payment.state.paymentId, command, context, budget);
      if (recorded.kind !== 'done') throw new Error(`a later result was ${recorded.kind}`);
      return recorded.payment;
    },
    resolve: (payment, operationId, operator, word) => {
      const { outcome, evidence, withoutFence } = word;
      const said = { outcome, evidence, withoutFence, actor: operator.actor, atMs: nowMs() };
      const command = { kind: 'resolve', operationId, ...said } as const;
      return executeOn(payment, command, contextOf(operator));
    },
    confirm: (payment, operationId, outcome) =>
      executeOn(payment, { kind: 'confirm', operationId, ...outcome }, BY_RECOVERY),
  };
};
