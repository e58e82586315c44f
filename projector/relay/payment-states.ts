/**
 * The state of a payment right after any of its events, for the relay and the reader of the topics.
 * Folded from the log: the stored read models may be behind, ahead or gone.
 */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { asPaymentEvent, type RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { type PaymentReadModel, project } from '../../shared/payment/response.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';

export type PaymentStates = {
  /** Throws UnreadableStream, StoreUnavailable, and Error where the event cannot be applied. */
  after(event: RecordedPaymentEvent): Promise<PaymentReadModel>;
};

/** Keeps the states of the last `paymentsMax` payments; any other is folded from its stream. */
export const followPaymentStates = (
  store: Pick<EventStore, 'readStream'>,
  paymentsMax = 10_000,
): PaymentStates => {
  const states = createBoundedMap<PaymentReadModel>(paymentsMax);

  const keep = (stream: string, readModel: PaymentReadModel): PaymentReadModel => {
    states.set(stream, readModel);
    return readModel;
  };

  /** The stream, at least up to a revision: an unreadable event after it changes nothing here. */
  const readBefore = async (stream: string, revision: number): Promise<RecordedEvent[]> => {
    try {
      return await store.readStream(stream);
    } catch (error) {
      if (error instanceof UnreadableStream && error.before.length >= revision) return error.before;
      throw error;
    }
  };

  const before = async ({
    stream,
    revision,
  }: RecordedPaymentEvent): Promise<PaymentReadModel | undefined> => {
    if (revision === 0) return undefined;
    const known = states.get(stream);
    if (known?.revision === revision - 1) return known;
    let readModel: PaymentReadModel | undefined;
    for (const event of await readBefore(stream, revision)) {
      if (event.revision < revision) readModel = project(readModel, asPaymentEvent(event));
    }
    return readModel;
  };

  return {
    after: async (event) => keep(event.stream, project(await before(event), event)),
  };
};
