/** Whose an event is: the merchant that the first event of its stream names. */
import { decode } from '../../shared/event-store/codec.ts';
import type {
  EventStore,
  RecordedEvent,
  StoredForm,
  UnreadableEvent,
} from '../../shared/event-store/port.ts';
import { paymentOf } from '../../shared/payment/events.ts';

type Placed = { stream: string; revision: number };

export type Owners = {
  /** Undefined for an event of no payment, or of one whose first event cannot be read. */
  of(event: RecordedEvent | UnreadableEvent): Promise<string | undefined>;
  ofForm(form: StoredForm): Promise<string | undefined>;
};

const STREAMS_KNOWN_MAX = 50_000;

const merchantIn = (event: RecordedEvent | UnreadableEvent | undefined): string | undefined =>
  event !== undefined && 'event' in event && event.event.type === 'PaymentCreated'
    ? event.event.data.merchantId
    : undefined;

/** Makes what knows the owners of the events of a log; those seen lately by heart. */
export const createOwners = (store: EventStore): Owners => {
  const known = new Map<string, string | undefined>();

  const keep = (stream: string, owner: string | undefined): string | undefined => {
    if (known.size >= STREAMS_KNOWN_MAX) {
      const [oldest] = known.keys();
      if (oldest !== undefined) known.delete(oldest);
    }
    known.set(stream, owner);
    return owner;
  };

  const lookUp = async (stream: string): Promise<string | undefined> => {
    const [first] = (await store.stored?.readStream(stream)) ?? [];
    return first === undefined ? undefined : merchantIn(decode(first));
  };

  const ownerOf = async (
    { stream, revision }: Placed,
    here: () => RecordedEvent | UnreadableEvent,
  ): Promise<string | undefined> => {
    if (paymentOf(stream) === undefined) return undefined;
    if (revision === 0) return keep(stream, merchantIn(here()));
    return known.get(stream) ?? keep(stream, await lookUp(stream));
  };

  return {
    of: (event) => ownerOf(event, () => event),
    ofForm: (form) => ownerOf(form, () => decode(form)),
  };
};
