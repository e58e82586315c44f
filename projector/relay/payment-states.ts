/**
 * The read model of a payment right after any of its events, for whoever walks through the log: the relay
 * and the reader of the topics. Independent of the read models, which may be behind, ahead or gone.
 */
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { asPaymentEvent, type RecordedPaymentEvent } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { type PaymentReadModel, project } from '../../shared/payment/response.ts';
import { createBoundedMap } from '../../shared/runtime/bounded-map.ts';

export type PaymentStates = {
  /** Throws UnreadableStream, StoreUnavailable, and Error where the event cannot follow. */
  after(event: RecordedPaymentEvent): Promise<PaymentReadModel>;
};

/** Keeps the last `readModelsMax` payments; any other is folded from its stream. */
export const followPaymentStates = (
  store: Pick<EventStore, 'readStream'>,
  readModelsMax = 10_000,
): PaymentStates => {
  const readModels = createBoundedMap<PaymentReadModel>(readModelsMax);

  const keep = (stream: string, readModel: PaymentReadModel): PaymentReadModel => {
    readModels.set(stream, readModel);
    return readModel;
  };

  /** The stream up to a revision: what comes after must not change what is made of it. */
  const readable = async (stream: string, revision: number): Promise<RecordedEvent[]> => {
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
    const known = readModels.get(stream);
    if (known?.revision === revision - 1) return known;
    let readModel: PaymentReadModel | undefined;
    for (const event of await readable(stream, revision)) {
      if (event.revision < revision) readModel = project(readModel, asPaymentEvent(event));
    }
    return readModel;
  };

  return {
    after: async (event) => keep(event.stream, project(await before(event), event)),
  };
};
