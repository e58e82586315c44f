/**
 * Applies batches of events to the read models, folded per payment and written once, with the checkpoint. A
 * failing event stops only its payment; the error of an unreachable engine is thrown, and nothing is written.
 */
import { FOREIGN } from '../shared/event-store/chain.ts';
import { isReadable } from '../shared/event-store/codec.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { asPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, Position, RecordedEvent } from '../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../shared/payment/events.ts';
import { project } from '../shared/payment/fold.ts';
import type { PaymentReadModel } from '../shared/payment/state.ts';
import { DocumentTooLarge } from '../shared/read-models/errors.ts';
import type {
  Parking,
  ReadModelChange,
  ReadModels,
  Unparking,
} from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { oneAfterAnother, slicesOf } from '../shared/runtime/scheduling.ts';
import { checkpointHashOf } from '../shared/subscription/subscription.ts';
import type { Freshness } from './freshness.ts';

/** `readModel` is the last good one; `poison` is the event that stopped the payment. */
type Folded = {
  readModel: PaymentReadModel | undefined;
  poison?: { revision: number; reason: string };
};

type ProjectionOptions = {
  store: Pick<EventStore, 'readStream'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'load' | 'apply' | 'parked'>;
  /** Left out where no request reads the read models yet. */
  freshness?: Pick<Freshness, 'applied' | 'starting' | 'lost'>;
  logger: Logger;
};

type Projecting = ProjectionOptions & {
  parked: Set<string>;
  checkpoint: Position | null;
  started: boolean;
  counts: { events: number; healed: number; parkings: number };
};

const applyOne = (readModel: PaymentReadModel | undefined, event: RecordedEvent): Folded => {
  try {
    return { readModel: project(readModel, asPaymentEvent(event)) };
  } catch (error) {
    return { readModel, poison: { revision: event.revision, reason: reasonOf(error) } };
  }
};

const foldUntilPoison = async (events: RecordedEvent[]): Promise<Folded> => {
  let folded: Folded = { readModel: undefined };
  for await (const slice of slicesOf(events)) {
    for (const event of slice) {
      folded = applyOne(folded.readModel, event);
      if (folded.poison !== undefined) return folded;
    }
  }
  return folded;
};

/** A stream that ends before `atLeast`, or cannot be read, gives a poison event. Throws StoreUnavailable. */
const foldPayment = async (
  { store }: Projecting,
  paymentId: string,
  atLeast: number,
): Promise<Folded> => {
  try {
    const folded = await foldUntilPoison(await store.readStream(streamOf(paymentId)));
    if (folded.poison !== undefined || (folded.readModel?.revision ?? -1) >= atLeast) return folded;
    const reason =
      folded.readModel === undefined
        ? 'the event store no longer has its stream'
        : 'its stream ends before it';
    return { ...folded, poison: { revision: atLeast, reason } };
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    return { readModel: undefined, poison: { revision: atLeast, reason: reasonOf(error) } };
  }
};

const foldNext = async (
  own: Projecting,
  before: Folded | undefined,
  paymentId: string,
  event: LogEvent,
): Promise<Folded | undefined> => {
  const { readModels, logger, parked, counts } = own;
  if (before?.poison !== undefined || parked.has(paymentId)) return before;
  const { revision } = event;
  // A first event needs no look-up: where a document exists already, the write is skipped.
  const readModel =
    before?.readModel ?? (revision === 0 ? undefined : await readModels.load(paymentId));
  const applied = readModel?.revision ?? -1;
  if (revision <= applied) return before;
  if ('unreadable' in event) return { readModel, poison: { revision, reason: event.unreadable } };
  if (revision === applied + 1) return applyOne(readModel, event);
  counts.healed += 1;
  logger.warn({ paymentId, revision }, 'gap in the events of a payment: its stream is read');
  return foldPayment(own, paymentId, revision);
};

const foldBatch = async (own: Projecting, events: LogEvent[]): Promise<Map<string, Folded>> => {
  const payments = new Map<string, Folded>();
  for (const event of events) {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined) continue;
    const folded = await foldNext(own, payments.get(paymentId), paymentId, event);
    if (folded !== undefined) payments.set(paymentId, folded);
  }
  return payments;
};

/** Any beyond are recognised by reading their stream again. */
export const PARKED_KNOWN_MAX = 10_000;

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

const lastOf = async ({ readModels }: Projecting, paymentId: string): Promise<number> =>
  (await readModels.load(paymentId))?.revision ?? -1;

const readParked = async (own: Projecting): Promise<void> => {
  const parked = await own.readModels.parked(PARKED_KNOWN_MAX);
  own.parked = new Set(parked.map(({ paymentId }) => paymentId));
};

const write = async (
  own: Projecting,
  payments: Map<string, Folded>,
  { to = own.checkpoint, hash }: { to?: Position | null; hash?: string | undefined } = {},
  before: ReadModelChange[] = [],
): Promise<Parking[]> => {
  const changes = [...before, ...changesOf(payments, new Date().toISOString())];
  try {
    await own.readModels.apply(changes, own.checkpoint, to, hash);
  } catch (error) {
    if (!(error instanceof DocumentTooLarge)) throw error;
    const { paymentId, message: reason } = error;
    const revision = payments.get(paymentId)?.readModel?.revision ?? 0;
    const poison = { readModel: undefined, poison: { revision, reason } };
    return write(own, new Map(payments).set(paymentId, poison), { to, hash }, before);
  }
  own.checkpoint = to;
  return changes.filter((change) => change.kind === 'park');
};

const noteParked = async (
  own: Projecting,
  parkings: Parking[],
  message = CANNOT_TAKE,
): Promise<void> => {
  for (const { paymentId, revision, reason } of parkings) {
    own.counts.parkings += 1;
    own.logger.error({ paymentId, revision, reason }, message);
  }
  await readParked(own);
};

const start = async (own: Projecting): Promise<Position | null> => {
  const stored = await own.readModels.checkpoint();
  await readParked(own);
  if (own.started && stored !== own.checkpoint) own.freshness?.lost();
  own.freshness?.starting();
  own.started = true;
  own.checkpoint = stored;
  return stored;
};

const foreignIn = (recorded: LogEvent): string | undefined => {
  if (!isReadable(recorded) || recorded.event.type !== 'LogBreakAcknowledged') return undefined;
  const { stream, revision, reason } = recorded.event.data;
  return revision === 0 && reason === FOREIGN ? paymentOf(stream) : undefined;
};

/** Payments that are acknowledged as foreign from their first event on; one with a document stays. */
const forgetForeign = async (
  own: Projecting,
  events: readonly LogEvent[],
): Promise<Unparking[]> => {
  const forgotten: Unparking[] = [];
  for (const paymentId of events.flatMap((event) => foreignIn(event) ?? [])) {
    if ((await lastOf(own, paymentId)) === -1) forgotten.push({ kind: 'unpark', paymentId });
  }
  return forgotten;
};

const applyBatch = async (own: Projecting, events: LogEvent[]): Promise<void> => {
  const last = events.at(-1);
  if (last === undefined) return;
  const payments = await foldBatch(own, events);
  const forgotten = await forgetForeign(own, events);
  for (const { paymentId } of forgotten) payments.delete(paymentId);
  const to = { to: last.position, hash: checkpointHashOf(last) ?? undefined };
  const parkings = await write(own, payments, to, forgotten);
  own.counts.events += events.length;
  // Parked payments count as applied: a reader sees the mark on the document.
  for (const { stream, revision } of events) {
    const paymentId = paymentOf(stream);
    if (paymentId !== undefined) own.freshness?.applied(paymentId, revision);
  }
  if (parkings.length + forgotten.length > 0) await noteParked(own, parkings);
};

const retryParked = async (own: Projecting, paymentId: string): Promise<boolean> => {
  const parked = await own.readModels.parked(PARKED_KNOWN_MAX);
  const { revision = -1 } = parked.find((one) => one.paymentId === paymentId) ?? {};
  const last = await lastOf(own, paymentId);
  // Parked after its last event: by a removal, which may have been taken back, or by the next event.
  const after = revision === last + 1 ? last : revision;
  const { readModel, poison } = await foldPayment(own, paymentId, after);
  if (poison === undefined && readModel !== undefined) {
    await write(own, new Map([[paymentId, { readModel }]]), {}, [{ kind: 'unpark', paymentId }]);
    await readParked(own);
    return true;
  }
  const at = poison && { ...poison, revision: Math.max(poison.revision, revision) };
  const folded = { readModel, ...(at && { poison: at }) };
  await noteParked(own, await write(own, new Map([[paymentId, folded]])));
  return false;
};

const removal = async (
  own: Projecting,
  paymentId: string,
  kept?: PaymentReadModel,
): Promise<void> => {
  const last = kept?.revision ?? (await lastOf(own, paymentId));
  const { poison } = await foldPayment(own, paymentId, last);
  if (poison === undefined) return;
  // Parked from the next event on: the document stays as good as it was.
  const stopped = { readModel: kept, poison: { ...poison, revision: last + 1 } };
  await noteParked(own, await write(own, new Map([[paymentId, stopped]])), NOT_WHOLE);
};

export const createProjection = (options: ProjectionOptions) => {
  const own: Projecting = {
    ...options,
    parked: new Set(),
    checkpoint: null,
    started: false,
    counts: { events: 0, healed: 0, parkings: 0 },
  };
  const inTurn = oneAfterAnother();
  return {
    start: () => inTurn(() => start(own)),
    /** Moves the checkpoint behind the batch. Throws what the engines throw. */
    events: (events: LogEvent[]) => inTurn(() => applyBatch(own, events)),
    retryParked: (paymentId: string) => inTurn(() => retryParked(own, paymentId)),
    /** Parks the payment where its stream is no longer whole; `kept` replaces its document. */
    removal: (paymentId: string, kept?: PaymentReadModel) =>
      inTurn(() => removal(own, paymentId, kept)),
    /** Between two batches: no event is applied meanwhile. */
    hold: <T>(step: () => Promise<T>): Promise<T> =>
      inTurn(async () => {
        const result = await step();
        // The step may have changed what is parked.
        await readParked(own);
        return result;
      }),
    /** False where the read models were wiped, or another writer moved the checkpoint. */
    inStep: () => inTurn(async () => (await own.readModels.checkpoint()) === own.checkpoint),
    checkpoint: (): Position | null => own.checkpoint,
    counts: () => ({ ...own.counts, parked: own.parked.size }),
  };
};
export type Projection = ReturnType<typeof createProjection>;
