/**
 * Folds the events of a batch into the read models of their payments, and writes nothing. A gap is healed
 * from the stream; a poison event stops its payment.
 */
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { asPaymentEvent } from '../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, RecordedEvent } from '../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../shared/payment/payment-events.ts';
import type { PaymentReadModel } from '../shared/payment/payment-response.ts';
import { project } from '../shared/payment/response.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import type { Logger } from '../shared/runtime/logger.ts';
import { pauseAt } from '../shared/runtime/slices.ts';

/** `readModel` is the last good one; `poison` is the event that stopped the payment. */
export type Folded = {
  readModel: PaymentReadModel | undefined;
  poison?: { revision: number; reason: string };
};

export type FoldOptions = {
  store: Pick<EventStore, 'readStream'>;
  readModels: Pick<ReadModels, 'load'>;
  logger: Logger;
  isParked(paymentId: string): boolean;
};

export type PaymentFolds = {
  /** On top of the stored read models. Throws what the engines throw. */
  foldBatch(events: LogEvent[]): Promise<Map<string, Folded>>;
  /**
   * One that ends before the revision `atLeast`, or cannot be read, gives a poison event. Throws
   * StoreUnavailable.
   */
  foldStream(paymentId: string, atLeast: number): Promise<Folded>;
  healed(): number;
};

const revisionOf = ({ readModel }: Folded): number => readModel?.revision ?? -1;

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

export const createPaymentFolds = ({
  store,
  readModels,
  logger,
  isParked,
}: FoldOptions): PaymentFolds => {
  let healed = 0;

  const foldStream = async (paymentId: string, atLeast: number): Promise<Folded> => {
    try {
      const folded = await foldUntilPoison(await store.readStream(streamOf(paymentId)));
      if (folded.poison !== undefined || revisionOf(folded) >= atLeast) return folded;
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

  const heal = (paymentId: string, { revision }: LogEvent): Promise<Folded> => {
    healed += 1;
    logger.warn({ paymentId, revision }, 'gap in the events of a payment: its stream is read');
    return foldStream(paymentId, revision);
  };

  const onTopOf = (
    readModel: PaymentReadModel | undefined,
    before: Folded | undefined,
    paymentId: string,
    event: LogEvent,
  ): Folded | undefined | Promise<Folded> => {
    const { revision } = event;
    const applied = revisionOf({ readModel });
    if (revision <= applied) return before;
    if ('unreadable' in event) return { readModel, poison: { revision, reason: event.unreadable } };
    return revision === applied + 1 ? applyOne(readModel, event) : heal(paymentId, event);
  };

  /** A promise only where something is read: most events follow one of their own batch. */
  const next = (
    before: Folded | undefined,
    paymentId: string,
    event: LogEvent,
  ): Folded | undefined | Promise<Folded | undefined> => {
    if (before?.poison !== undefined || isParked(paymentId)) return before;
    // A first event needs no look-up: where a document exists already, the write is skipped.
    if (before?.readModel !== undefined || event.revision === 0)
      return onTopOf(before?.readModel, before, paymentId, event);
    return readModels
      .load(paymentId)
      .then((readModel) => onTopOf(readModel, before, paymentId, event));
  };

  return {
    foldBatch: async (events) => {
      const payments = new Map<string, Folded>();
      for (const event of events) {
        const paymentId = paymentOf(event.stream);
        if (paymentId === undefined) continue;
        const step = next(payments.get(paymentId), paymentId, event);
        const folded = step instanceof Promise ? await step : step;
        if (folded !== undefined) payments.set(paymentId, folded);
      }
      return payments;
    },
    foldStream,
    healed: () => healed,
  };
};
