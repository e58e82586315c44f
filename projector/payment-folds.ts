/** Folds events into read models without writing: heals a gap from the stream, stops at a poison event. */
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { asPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../shared/payment/payment-events.ts';
import type { PaymentReadModel } from '../shared/payment/payment-response.ts';
import { project } from '../shared/payment/response.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { pauseAt } from '../shared/runtime/slices.ts';

/** `readModel` is the last good one; `poison` is the event that stopped the payment. */
export type Folded = {
  readModel: PaymentReadModel | undefined;
  poison?: { revision: number; reason: string };
};

/** `counts.healed` goes up at each gap. */
type Folding = {
  store: Pick<EventStore, 'readStream'>;
  readModels: Pick<ReadModels, 'load'>;
  logger: Logger;
  parked: ReadonlySet<string>;
  counts: { healed: number };
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
  for (const [index, event] of events.entries()) {
    const pause = pauseAt(index);
    if (pause !== undefined) await pause;
    folded = applyOne(folded.readModel, event);
    if (folded.poison !== undefined) return folded;
  }
  return folded;
};

/** A stream that ends before `atLeast`, or cannot be read, gives a poison event. Throws StoreUnavailable. */
export const foldPayment = async (
  { store }: Pick<Folding, 'store'>,
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

/** The payment after one more event, on top of what the batch or else the store has of it. */
const foldNext = async (
  folding: Folding,
  before: Folded | undefined,
  paymentId: string,
  event: LogEvent,
): Promise<Folded | undefined> => {
  const { readModels, logger, parked, counts } = folding;
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
  return foldPayment(folding, paymentId, revision);
};

export const foldBatch = async (
  folding: Folding,
  events: LogEvent[],
): Promise<Map<string, Folded>> => {
  const payments = new Map<string, Folded>();
  for (const event of events) {
    const paymentId = paymentOf(event.stream);
    if (paymentId === undefined) continue;
    const folded = await foldNext(folding, payments.get(paymentId), paymentId, event);
    if (folded !== undefined) payments.set(paymentId, folded);
  }
  return payments;
};
