import { project } from '../payment/fold.ts';
import { bytesOfReadModel, type PaymentReadModel } from '../payment/state.ts';
import { createBoundedMap } from '../runtime/bounded-map.ts';
import { slicesOf } from '../runtime/scheduling.ts';
import { UnreadableStream } from './errors.ts';
import { asPaymentEvent, type RecordedPaymentEvent } from './fold-stream.ts';
import type { EventStore, RecordedEvent } from './port.ts';

const STATES_MAX = 10_000;
const STATES_BYTES_MAX = 48 * 1024 * 1024;

export const followPaymentStates = (store: Pick<EventStore, 'readStream'>) => {
  const states = createBoundedMap<PaymentReadModel>(STATES_MAX, {
    bytesMax: STATES_BYTES_MAX,
    bytesOf: bytesOfReadModel,
  });

  /** An unreadable event after the revision changes nothing here. */
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
    for await (const slice of slicesOf(await readBefore(stream, revision)))
      for (const event of slice)
        if (event.revision < revision) readModel = project(readModel, asPaymentEvent(event));
    return readModel;
  };

  return {
    /** Throws UnreadableStream, StoreUnavailable, and Error where an event cannot be applied. */
    after: async (event: RecordedPaymentEvent): Promise<PaymentReadModel> => {
      const readModel = project(await before(event), event);
      states.set(event.stream, readModel);
      return readModel;
    },
  };
};
export type PaymentStates = ReturnType<typeof followPaymentStates>;
