/**
 * The view of a payment right after any of its events, for whoever walks through the log: the relay
 * and the reader of the topics. Independent of the read models, which may be behind, ahead or gone.
 */
import {
  type EventStore,
  type RecordedEvent,
  UnreadableStream,
} from '../../shared/event-store/port.ts';
import { type PaymentView, project } from '../../shared/payment/response.ts';

export type FollowingViews = {
  /** Throws UnreadableStream, StoreUnavailable, and Error where the event cannot follow. */
  after(event: RecordedEvent): Promise<PaymentView>;
};

/** Keeps the last `viewsMax` payments; any other is folded from its stream. */
export const followViews = (
  store: Pick<EventStore, 'readStream'>,
  viewsMax = 10_000,
): FollowingViews => {
  const views = new Map<string, PaymentView>();

  const keep = (stream: string, view: PaymentView): PaymentView => {
    views.delete(stream);
    views.set(stream, view);
    if (views.size > viewsMax) views.delete(views.keys().next().value ?? stream);
    return view;
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

  const before = async ({ stream, revision }: RecordedEvent): Promise<PaymentView | undefined> => {
    if (revision === 0) return undefined;
    const known = views.get(stream);
    if (known?.revision === revision - 1) return known;
    let view: PaymentView | undefined;
    for (const event of await readable(stream, revision)) {
      if (event.revision < revision) view = project(view, event);
    }
    return view;
  };

  return {
    after: async (event) => keep(event.stream, project(await before(event), event)),
  };
};
