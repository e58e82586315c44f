/** Loads, decides, appends; again on a conflict: the only loop around an append, its one effect (gaps §6). */
import { expectedAfter, timeAfter } from '../shared/event-store/codec.ts';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreUnavailable,
  StreamNotWhole,
} from '../shared/event-store/errors.ts';
import {
  asPaymentEvent,
  foldInSlices,
  type RecordedPaymentEvent,
} from '../shared/event-store/fold-stream.ts';
import type { EventContext, EventStore, NewEvent } from '../shared/event-store/port.ts';
import {
  type Budget,
  BudgetSpent,
  RECORD_BUDGET_MS,
  startBudget,
} from '../shared/http/request-budget.ts';
import type {
  AuthenticateCommand,
  Command,
  OpenCommand,
  RecordCommand,
  ResolutionCommand,
} from '../shared/payment/commands.ts';
import { type Decision, decide } from '../shared/payment/decide.ts';
import { type PaymentEvent, streamOf } from '../shared/payment/events.ts';
import { evolve } from '../shared/payment/fold.ts';
import { bytesOfPayment, type Operation, type PaymentState } from '../shared/payment/state.ts';
import { isOfOperation } from '../shared/payment/transitions.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { jittered, pause, WIDE_JITTER } from '../shared/runtime/back-off.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import { newEventId } from '../shared/runtime/ids.ts';
import type { Metrics } from '../shared/runtime/metrics.ts';

export type LoadedPayment = {
  events: readonly RecordedPaymentEvent[];
  state: PaymentState;
};

export const after = (
  payment: LoadedPayment | undefined,
  appended: readonly RecordedPaymentEvent[],
): LoadedPayment => {
  let state = payment?.state;
  for (const recorded of appended) state = evolve(state, recorded);
  if (state === undefined) throw new Error('a payment without events');
  return { events: [...(payment?.events ?? []), ...appended], state };
};

const operationIn = (state: PaymentState | undefined, operationId: string): Operation | undefined =>
  state?.operations.find((one) => one.operationId === operationId);

export const operationOf = (
  { state }: Pick<LoadedPayment, 'state'>,
  operationId: string,
): Operation => {
  const found = operationIn(state, operationId);
  if (found === undefined)
    throw new Error(`payment ${state.paymentId} has no operation ${operationId}`);
  return found;
};

/** Whether these appends stored the intent: another process may have begun the same derived id (gaps §17). */
const isIntentOf = (
  { events, state }: LoadedPayment,
  operationId: string,
  tried: ReadonlySet<string>,
): boolean => {
  const operation = operationIn(state, operationId);
  return operation !== undefined && tried.has(events[operation.requestedAt]?.id ?? '');
};

export const notInLog = (paymentId: string): StreamNotWhole =>
  new StreamNotWhole(
    `payment ${paymentId}`,
    'it was seen before, and the log does not have it whole',
  );

export type Executed =
  | { kind: 'done'; payment: LoadedPayment }
  | (Exclude<Decision, { kind: 'events' }> & { payment: LoadedPayment | undefined });

type PaymentLogOptions = {
  store: EventStore;
  /** Given where they and the log are files of this process alone: then they are never ahead of the log. */
  readModels?: Pick<ReadModelsReader, 'getAny'> | undefined;
  /** Wall clock; only ever stored as an event's time. */
  nowMs: () => number;
  metrics: Pick<Metrics, 'eventsAppended' | 'appendConflicts' | 'erasures'>;
  cachedPaymentsMax: number;
  cachedBytesMax: number;
};

export const BY_RECOVERY = { actor: 'recovery' };

const APPEND_PAUSE_MS = 50;

const isOnKnownOperation = ({ kind }: Command): boolean =>
  !['create', 'capture', 'void', 'refund'].includes(kind);

/** A payment's time never goes back. */
const newEvents = (
  payment: LoadedPayment | undefined,
  decided: readonly PaymentEvent[],
  context: EventContext,
  nowMs: number,
): NewEvent[] => {
  const time = timeAfter(payment?.events.at(-1), nowMs);
  return decided.map((event) => ({ id: newEventId(), time, event, context }));
};

/**
 * The very same append again while its outcome is unknown: same ids, same expected revision. Throws
 * AppendOutcomeUnknown where that outlasts the budget, and what else the store throws.
 */
const append = async (
  store: EventStore,
  batch: Parameters<EventStore['append']>,
  budget: Budget,
): Promise<RecordedPaymentEvent[]> => {
  let unknown: AppendOutcomeUnknown | undefined;
  for (;;) {
    try {
      return (await store.append(...batch)).map(asPaymentEvent);
    } catch (error) {
      if (error instanceof AppendOutcomeUnknown) unknown = error;
      // That the store rejects this attempt says nothing of the attempt before it.
      else if (unknown === undefined || !(error instanceof StoreUnavailable)) throw error;
      if (budget.leftMs() === 0) throw unknown;
      await pause(jittered(APPEND_PAUSE_MS, WIDE_JITTER));
    }
  }
};

const contextAfter = (
  { events }: LoadedPayment,
  operationId: string,
  by: Partial<EventContext> | undefined,
): EventContext => {
  const intent = events.find(({ event }) => isOfOperation(event, operationId));
  if (intent === undefined)
    throw new Error(`operation ${operationId} has an outcome and no intent`);
  return { ...intent.context, ...by, causationId: intent.id };
};

/** Throws Error if the command was not carried out: one on a known operation always is. */
export const paymentDone = (command: Command, executed: Executed): LoadedPayment => {
  if (executed.kind === 'done') return executed.payment;
  throw new Error(`the ${command.kind} of operation ${command.operationId} was ${executed.kind}`);
};

export const createPaymentLog = (options: PaymentLogOptions) => {
  const { store, readModels, nowMs, metrics, cachedPaymentsMax } = options;
  const bytes = { bytesMax: options.cachedBytesMax, bytesOf: bytesOfPayment };
  const cache = createBoundedMap<LoadedPayment>(cachedPaymentsMax, bytes);

  const remember = (paymentId: string, payment: LoadedPayment): void => {
    // A slow read may come back after an append of this process: the longer stream is kept.
    const known = cache.peek(paymentId);
    if (known === undefined || known.events.length <= payment.events.length)
      cache.set(paymentId, payment);
  };

  /**
   * From the cache where it will do. Undefined where no such payment exists. Throws UnreadableStream,
   * StoreUnavailable, and StreamNotWhole where the store no longer has what this process saw.
   */
  const load = async (
    paymentId: string,
    from: 'store' | 'cache',
  ): Promise<LoadedPayment | undefined> => {
    const cached = from === 'cache' ? cache.get(paymentId) : undefined;
    if (cached !== undefined) return cached;
    const known = cache.peek(paymentId);
    const shown = await readModels?.getAny(paymentId).catch(() => undefined);
    const events = await store.readStream(streamOf(paymentId));
    // Removed at the server, or the last ones hidden by a damaged index.
    if (events.length <= (shown?.revision ?? (known === undefined ? -1 : 0)))
      throw notInLog(paymentId);
    const state = await foldInSlices(events, evolve);
    if (state === undefined) return undefined;
    const payment = { events: events.map(asPaymentEvent), state };
    remember(paymentId, payment);
    return payment;
  };

  /**
   * Decides and appends; rejects only from a state just read. Throws BudgetSpent when conflicts outlast the
   * budget, AppendOutcomeUnknown when an append stays unknown for as long, and the store's other errors.
   */
  const execute = async (
    paymentId: string,
    command: Command,
    context: EventContext,
    budget: Budget,
  ): Promise<Executed> => {
    // A create knows its revision: the exact expectation protects it, not the read.
    let payment = command.kind === 'create' ? undefined : await load(paymentId, 'cache');
    let justRead = command.kind === 'create';
    // Dropped from the cache and read again meanwhile, the payment may be from before the intent.
    if (isOnKnownOperation(command) && !operationIn(payment?.state, command.operationId)) {
      payment = await load(paymentId, 'store');
      justRead = true;
    }
    const tried = new Set<string>();
    for (;;) {
      const decision = decide(payment?.state, command);
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
          const expected = expectedAfter(payment?.events.at(-1));
          const appended = await append(store, [streamOf(paymentId), expected, events], budget);
          const next = after(payment, appended);
          remember(paymentId, next);
          for (const { event } of appended) {
            metrics.eventsAppended.inc({ type: event.type });
            if (event.type === 'PaymentPersonalDataErased')
              metrics.erasures.inc({ reason: event.data.reason });
          }
          return { kind: 'done', payment: next };
        } catch (error) {
          if (!(error instanceof RevisionConflict)) throw error;
          metrics.appendConflicts.inc();
          if (budget.leftMs() === 0) throw new BudgetSpent();
        }
      }
      payment = await load(paymentId, 'store');
      justRead = true;
    }
  };

  /**
   * Records what came of an operation, in the context of its intent and of `by`; an earlier outcome stays. A
   * fence judged on `payment` is not recorded where the provider has opened something since. Call it in the
   * payment's queue. Returns the payment as it is afterwards. Throws what the event store throws.
   */
  const record = async (
    payment: LoadedPayment,
    command: OpenCommand | AuthenticateCommand | RecordCommand | ResolutionCommand,
    by?: Partial<EventContext>,
  ): Promise<LoadedPayment> => {
    const context = contextAfter(payment, command.operationId, by);
    const { reference: judgedReference } = operationOf(payment, command.operationId);
    const judged = command.kind === 'record' ? { ...command, judgedReference } : command;
    const { paymentId } = payment.state;
    // With more operations at once than payments are kept, it would have to be read again.
    remember(paymentId, payment);
    const recorded = await execute(paymentId, judged, context, startBudget(RECORD_BUDGET_MS));
    return paymentDone(command, recorded);
  };

  return { load, peek: (paymentId: string) => cache.peek(paymentId), execute, record };
};

export type PaymentLog = ReturnType<typeof createPaymentLog>;
