/** Logs of whole payments, made quickly, and what their documents ought to be. */
import { allReadable } from '../../shared/event-store/codec.ts';
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { type PaymentEvent, streamOf } from '../../shared/payment/events.ts';
import { foldReadModel } from '../../shared/payment/fold.ts';
import { keptBodyOf } from '../../shared/payment/response.ts';
import type { PaymentReadModel } from '../../shared/payment/state.ts';
import { appendPayment, newEvent, timeOf, wholeLife } from './payment-events.ts';

/** How many events a payment's whole life has. */
export const LIFE = 6;

/** Appends a whole life of a payment at once. */
export const appendLife = async (
  store: Pick<EventStore, 'append'>,
  paymentId: string,
  merchantId?: string,
): Promise<void> => {
  await appendPayment(store, paymentId, wholeLife(paymentId, merchantId), timeOf);
};

/** Appends a whole life of each payment, taken in turns: a stream's events stand apart in the log. */
export const appendLives = async (
  store: Pick<EventStore, 'append'>,
  paymentIds: readonly string[],
  merchantOf: (at: number) => string | undefined = () => undefined,
): Promise<void> => {
  const lives = paymentIds.map((id, at) => ({ id, events: wholeLife(id, merchantOf(at)) }));
  const ends = new Map<string, RecordedEvent>();
  for (let revision = 0; revision < LIFE; revision += 1) {
    const appends = lives.map(async ({ id, events }) => {
      const event = newEvent(events[revision] as PaymentEvent, timeOf(revision));
      const [stored] = await store.append(streamOf(id), ends.get(id) ?? 'none', [event]);
      if (stored !== undefined) ends.set(id, stored);
    });
    await Promise.all(appends);
  }
};

/** Every event of a log. */
export const eventsOf = async (store: Pick<EventStore, 'readAll'>): Promise<RecordedEvent[]> => {
  const events: RecordedEvent[] = [];
  for (;;) {
    const page = allReadable(await store.readAll(events.at(-1)?.position ?? null, 2_000));
    if (page.length === 0) return events;
    events.push(...page);
  }
};

/** The read model of a payment by the fold of its stream. Throws where the stream cannot be folded. */
export const readModelOf = async (
  store: Pick<EventStore, 'readStream'>,
  paymentId: string,
): Promise<PaymentReadModel | undefined> =>
  foldStream(await store.readStream(streamOf(paymentId)), foldReadModel);

/** The body of a payment by the same. */
export const foldOf = async (
  store: Pick<EventStore, 'readStream'>,
  paymentId: string,
): Promise<string | undefined> => {
  const readModel = await readModelOf(store, paymentId);
  return readModel && keptBodyOf(readModel);
};

/** The bodies of several payments. */
export const foldsOf = async (
  store: EventStore,
  paymentIds: readonly string[],
): Promise<Map<string, string>> => {
  const bodies = new Map<string, string>();
  for (const id of paymentIds) {
    const body = await foldOf(store, id);
    if (body !== undefined) bodies.set(id, body);
  }
  return bodies;
};
