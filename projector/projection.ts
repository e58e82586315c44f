/**
 * From events to documents (skip, apply, heal a gap, park a poison event). A batch is
 * folded per payment and written once, with the checkpoint, in one step.
 *
 * An event that cannot be applied stops its own payment only. An engine that is out of reach is
 * never taken for a poison event: its error goes to the caller, and nothing is written.
 */

import { isReadable } from '../shared/event-store/codec.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { asPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type {
  EventStore,
  Position,
  RecordedEvent,
  UnreadableEvent,
} from '../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../shared/payment/payment-events.ts';
import { type PaymentReadModel, project } from '../shared/payment/response.ts';
import type { ReadModelChange, ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Freshness } from './freshness.ts';
import type { Log } from './subscription.ts';

/** Parked payments known by heart; any beyond are recognised by reading their stream again. */
const PARKED_KNOWN_MAX = 10_000;

type StoredEvent = RecordedEvent | UnreadableEvent;

/** What became of one payment in a batch: the last good read model, and the event that stopped it. */
type Outcome = {
  readModel: PaymentReadModel | undefined;
  poison?: { revision: number; reason: string };
};

export type ProjectionOptions = {
  store: Pick<EventStore, 'readStream'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'load' | 'apply' | 'parked'>;
  freshness: Pick<Freshness, 'applied' | 'starting' | 'lost'>;
  logger: Log;
};

export type Projection = {
  /** Reads checkpoint and parked payments. Throws ReadModelsUnavailable. */
  start(): Promise<Position | null>;
  /** Applies a batch and moves the checkpoint. Throws what the engines throw. */
  events(events: StoredEvent[]): Promise<void>;
  /** Reads a parked payment's stream again; true when its document is whole now. */
  retryParked(paymentId: string): Promise<boolean>;
  /** Runs a step between two batches: nothing is applied meanwhile. */
  hold<T>(step: () => Promise<T>): Promise<T>;
  /** False when the stored checkpoint is not ours: the read models were wiped, or moved by another. */
  inStep(): Promise<boolean>;
  checkpoint(): Position | null;
  /** Events taken, gaps healed and payments parked since the start, and payments parked now. */
  counts(): { events: number; healed: number; parkings: number; parked: number };
};

const isNext = (readModel: PaymentReadModel | undefined, event: StoredEvent): boolean =>
  event.revision === (readModel?.revision ?? -1) + 1;
const isOld = (readModel: PaymentReadModel | undefined, event: StoredEvent): boolean =>
  event.revision <= (readModel?.revision ?? -1);

const applyOne = (readModel: PaymentReadModel | undefined, event: RecordedEvent): Outcome => {
  try {
    return { readModel: project(readModel, asPaymentEvent(event)) };
  } catch (error) {
    // seeded bug: poison-parks-one
    return { readModel, poison: { revision: event.revision, reason: reasonOf(error) } };
  }
};

const foldUntilPoison = (events: RecordedEvent[]): Outcome => {
  let outcome: Outcome = { readModel: undefined };
  for (const event of events) {
    outcome = applyOne(outcome.readModel, event);
    if (outcome.poison !== undefined) return outcome;
  }
  return outcome;
};

const changesOf = (outcomes: Map<string, Outcome>, time: string): ReadModelChange[] => {
  const changes: ReadModelChange[] = [];
  for (const [paymentId, { readModel, poison }] of outcomes) {
    if (readModel !== undefined) changes.push({ kind: 'readModel', readModel });
    if (poison !== undefined) changes.push({ kind: 'park', paymentId, ...poison, time });
  }
  return changes;
};

/** The projection over one store and one set of read models; its steps run one after the other. */
export const createProjection = ({
  store,
  readModels,
  freshness,
  logger,
}: ProjectionOptions): Projection => {
  const counts = { events: 0, healed: 0, parkings: 0 };
  let parked = new Set<string>();
  let checkpoint: Position | null = null;
  let started = false;
  let turn: Promise<unknown> = Promise.resolve();

  /** One step at a time: a retry never sees, or moves, a checkpoint in the middle of a batch. */
  const inTurn = <T>(step: () => Promise<T>): Promise<T> => {
    const result = turn.then(step, step);
    turn = result.catch(() => undefined);
    return result;
  };

  const readParked = async (): Promise<void> => {
    parked = new Set((await readModels.parked(PARKED_KNOWN_MAX)).map((p) => p.paymentId));
  };

  /** The whole payment from its stream: what a gap, a retry and a repair by hand all do. */
  const reread = async (paymentId: string, reached: number): Promise<Outcome> => {
    try {
      const outcome = foldUntilPoison(await store.readStream(streamOf(paymentId)));
      if (outcome.poison !== undefined || !((outcome.readModel?.revision ?? -1) < reached))
        return outcome;
      return { ...outcome, poison: { revision: reached, reason: 'its stream ends before it' } };
    } catch (error) {
      if (!(error instanceof UnreadableStream)) throw error;
      return { readModel: undefined, poison: { revision: reached, reason: reasonOf(error) } };
    }
  };

  const heal = async (paymentId: string, { revision }: StoredEvent): Promise<Outcome> => {
    counts.healed += 1;
    logger.warn({ paymentId, revision }, 'gap in the events of a payment, its stream is read');
    return reread(paymentId, revision);
  };

  const next = async (
    before: Outcome | undefined,
    paymentId: string,
    event: StoredEvent,
  ): Promise<Outcome | undefined> => {
    if (before?.poison !== undefined || parked.has(paymentId)) return before;
    // A first event needs no look-up: where there is a document already, the write is skipped.
    const readModel =
      before?.readModel ?? (event.revision === 0 ? undefined : await readModels.load(paymentId));
    // seeded bug: already-applied
    if (isOld(readModel, event)) return before;
    if ('unreadable' in event)
      return { readModel, poison: { revision: event.revision, reason: event.unreadable } };
    // seeded bug: gap-healed
    return isNext(readModel, event) ? applyOne(readModel, event) : heal(paymentId, event);
  };

  const write = async (
    outcomes: Map<string, Outcome>,
    to: Position | null,
    hash?: string,
  ): Promise<(ReadModelChange & { kind: 'park' })[]> => {
    const changes = changesOf(outcomes, new Date().toISOString());
    await readModels.apply(changes, checkpoint, to, hash);
    checkpoint = to;
    return changes.filter((change) => change.kind === 'park');
  };

  const noteParked = async (parks: (ReadModelChange & { kind: 'park' })[]): Promise<void> => {
    for (const { paymentId, revision, reason } of parks) {
      counts.parkings += 1;
      logger.error({ paymentId, revision, reason }, 'payment parked at an event');
    }
    await readParked();
  };

  const fold = async (events: StoredEvent[]): Promise<Map<string, Outcome>> => {
    const outcomes = new Map<string, Outcome>();
    for (const event of events) {
      const paymentId = paymentOf(event.stream);
      if (paymentId === undefined) continue;
      const outcome = await next(outcomes.get(paymentId), paymentId, event);
      if (outcome !== undefined) outcomes.set(paymentId, outcome);
    }
    return outcomes;
  };

  const applyBatch = async (events: StoredEvent[]): Promise<void> => {
    const last = events.at(-1);
    if (last === undefined) return;
    const hash = isReadable(last) ? last.hash : undefined;
    const parks = await write(await fold(events), last.position, hash);
    counts.events += events.length;
    // Also for parked payments: readers see that mark on the document, not here.
    for (const { stream, revision } of events) {
      const paymentId = paymentOf(stream);
      if (paymentId !== undefined) freshness.applied(paymentId, revision);
    }
    if (parks.length > 0) await noteParked(parks);
  };

  const retry = async (paymentId: string): Promise<boolean> => {
    const known = (await readModels.parked(PARKED_KNOWN_MAX)).find(
      (p) => p.paymentId === paymentId,
    );
    const outcome = await reread(paymentId, known?.revision ?? -1);
    await noteParked(await write(new Map([[paymentId, outcome]]), checkpoint));
    return outcome.poison === undefined;
  };

  return {
    start: () =>
      inTurn(async () => {
        const stored = await readModels.checkpoint();
        await readParked();
        if (started && stored !== checkpoint) freshness.lost();
        freshness.starting();
        started = true;
        checkpoint = stored;
        return stored;
      }),
    events: (events) => inTurn(() => applyBatch(events)),
    retryParked: (paymentId) => inTurn(() => retry(paymentId)),
    // The step may have changed what is parked.
    hold: (step) =>
      inTurn(async () => {
        const result = await step();
        await readParked();
        return result;
      }),
    inStep: () => inTurn(async () => (await readModels.checkpoint()) === checkpoint),
    checkpoint: () => checkpoint,
    counts: () => ({ ...counts, parked: parked.size }),
  };
};
