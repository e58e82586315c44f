/**
 * Applies batches of events to the read models. A batch is folded per payment and written once, with the
 * checkpoint. An event that cannot be applied stops its own payment only; the error of an engine out of
 * reach is thrown, and nothing is written.
 */
import type { EventStore, LogEvent, Position } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/payment-events.ts';
import type { PaymentReadModel } from '../shared/payment/payment-response.ts';
import { DocumentTooLarge } from '../shared/read-models/errors.ts';
import type { ReadModelChange, ReadModels } from '../shared/read-models/port.ts';
import type { Logger } from '../shared/runtime/log.ts';
import type { Freshness } from './freshness.ts';
import { checkpointHashOf } from './log-check.ts';
import { createPaymentFolds, type Folded } from './payment-folds.ts';
import { createTurns } from './turns.ts';
import { forgetForeign } from './verification/acknowledge.ts';

/** Any beyond are recognised by reading their stream again. */
export const PARKED_KNOWN_MAX = 10_000;

type ProjectionOptions = {
  store: Pick<EventStore, 'readStream'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'load' | 'apply' | 'parked'>;
  freshness: Pick<Freshness, 'applied' | 'starting' | 'lost'>;
  logger: Logger;
};

export type Projection = {
  start(): Promise<Position | null>;
  /** Moves the checkpoint behind the batch. Throws what the engines throw. */
  events(events: LogEvent[]): Promise<void>;
  retryParked(paymentId: string): Promise<boolean>;
  /** By the fold of its stream, or parks the payment. True when the document is whole now. */
  repair(paymentId: string): Promise<boolean>;
  /** Parks the payment where its stream is no longer whole; `kept` replaces its document. */
  removal(paymentId: string, kept?: PaymentReadModel): Promise<void>;
  /** Between two batches: no event is applied meanwhile. */
  hold<T>(step: () => Promise<T>): Promise<T>;
  /** False where the read models were wiped, or another writer moved the checkpoint. */
  inStep(): Promise<boolean>;
  checkpoint(): Position | null;
  counts(): { events: number; healed: number; parkings: number; parked: number };
};

type Parking = ReadModelChange & { kind: 'park' };

const CANNOT_TAKE = 'payment parked: the read models cannot take its event';
const NOT_WHOLE = 'payment parked: the event store no longer holds its stream whole';

const changesOf = (payments: Map<string, Folded>, time: string): ReadModelChange[] => {
  const changes: ReadModelChange[] = [];
  for (const [paymentId, { readModel, poison }] of payments) {
    if (readModel !== undefined) changes.push({ kind: 'readModel', readModel });
    if (poison !== undefined) changes.push({ kind: 'park', paymentId, ...poison, time });
  }
  return changes;
};

export const createProjection = ({
  store,
  readModels,
  freshness,
  logger,
}: ProjectionOptions): Projection => {
  const counts = { events: 0, parkings: 0 };
  let parked = new Set<string>();
  let checkpoint: Position | null = null;
  let started = false;
  const inTurn = createTurns();
  const folds = createPaymentFolds({
    store,
    readModels,
    logger,
    isParked: (paymentId) => parked.has(paymentId),
  });

  const lastOf = async (paymentId: string): Promise<number> =>
    (await readModels.load(paymentId))?.revision ?? -1;

  const readParked = async (): Promise<void> => {
    parked = new Set((await readModels.parked(PARKED_KNOWN_MAX)).map((p) => p.paymentId));
  };

  const write = async (
    payments: Map<string, Folded>,
    to: Position | null,
    hash?: string,
    before: ReadModelChange[] = [],
  ): Promise<Parking[]> => {
    const changes = [...before, ...changesOf(payments, new Date().toISOString())];
    try {
      await readModels.apply(changes, checkpoint, to, hash);
    } catch (error) {
      if (!(error instanceof DocumentTooLarge)) throw error;
      const { paymentId, message: reason } = error;
      const revision = payments.get(paymentId)?.readModel?.revision ?? 0;
      const poison = { readModel: undefined, poison: { revision, reason } };
      return write(new Map(payments).set(paymentId, poison), to, hash, before);
    }
    checkpoint = to;
    return changes.filter((change) => change.kind === 'park');
  };

  const noteParked = async (parkings: Parking[], message = CANNOT_TAKE): Promise<void> => {
    for (const { paymentId, revision, reason } of parkings) {
      counts.parkings += 1;
      logger.error({ paymentId, revision, reason }, message);
    }
    await readParked();
  };

  const applyBatch = async (events: LogEvent[]): Promise<void> => {
    const last = events.at(-1);
    if (last === undefined) return;
    const payments = await folds.foldBatch(events);
    const forgotten = await forgetForeign(events, lastOf);
    for (const { paymentId } of forgotten) payments.delete(paymentId);
    const hash = checkpointHashOf(last) ?? undefined;
    const parkings = await write(payments, last.position, hash, forgotten);
    counts.events += events.length;
    // Parked payments count as applied: a reader sees the mark on the document.
    for (const { stream, revision } of events) {
      const paymentId = paymentOf(stream);
      if (paymentId !== undefined) freshness.applied(paymentId, revision);
    }
    if (parkings.length + forgotten.length > 0) await noteParked(parkings);
  };

  const retry = async (paymentId: string): Promise<boolean> => {
    const known = (await readModels.parked(PARKED_KNOWN_MAX)).find(
      (p) => p.paymentId === paymentId,
    );
    const last = await lastOf(paymentId);
    // Parked after its last event: by a removal, which may have been taken back, or by the next event.
    const { revision = -1 } = known ?? {};
    const after = revision === last + 1 ? last : revision;
    const { readModel, poison } = await folds.foldStream(paymentId, after);
    if (poison === undefined && readModel !== undefined) {
      await write(new Map(), checkpoint, undefined, [{ kind: 'repair', paymentId, readModel }]);
      await readParked();
      return true;
    }
    const at = poison && { ...poison, revision: Math.max(poison.revision, revision) };
    const folded = { readModel, ...(at && { poison: at }) };
    await noteParked(await write(new Map([[paymentId, folded]]), checkpoint));
    return false;
  };

  const removal = async (paymentId: string, kept?: PaymentReadModel): Promise<void> => {
    const last = kept?.revision ?? (await lastOf(paymentId));
    const { poison } = await folds.foldStream(paymentId, last);
    if (poison === undefined) return;
    // Parked from the next event on: the document stays as good as it was.
    const stopped = { readModel: kept, poison: { ...poison, revision: last + 1 } };
    await noteParked(await write(new Map([[paymentId, stopped]]), checkpoint), NOT_WHOLE);
  };

  const repair = async (paymentId: string): Promise<boolean> => {
    const folded = await folds.foldStream(paymentId, 0);
    const { readModel, poison } = folded;
    const parked = new Map(poison && [[paymentId, { readModel: undefined, poison }]]);
    const replaced: ReadModelChange = { kind: 'repair', paymentId, readModel };
    await noteParked(await write(parked, checkpoint, undefined, [replaced]));
    return poison === undefined;
  };

  const start = async (): Promise<Position | null> => {
    const stored = await readModels.checkpoint();
    await readParked();
    if (started && stored !== checkpoint) freshness.lost();
    freshness.starting();
    started = true;
    checkpoint = stored;
    return stored;
  };

  return {
    start: () => inTurn(start),
    events: (events) => inTurn(() => applyBatch(events)),
    retryParked: (paymentId) => inTurn(() => retry(paymentId)),
    removal: (paymentId, kept) => inTurn(() => removal(paymentId, kept)),
    repair: (paymentId) => inTurn(() => repair(paymentId)),
    hold: (step) =>
      inTurn(async () => {
        const result = await step();
        // The step may have changed what is parked.
        await readParked();
        return result;
      }),
    inStep: () => inTurn(async () => (await readModels.checkpoint()) === checkpoint),
    checkpoint: () => checkpoint,
    counts: () => ({ ...counts, healed: folds.healed(), parked: parked.size }),
  };
};
