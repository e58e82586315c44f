/** Logs of whole payments, made quickly, and what their documents ought to be. */
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import type { PaymentReadModel } from '../../shared/payment/payment-response.ts';
import { bodyOf, foldReadModel } from '../../shared/payment/response.ts';
import { newEvent, timeOf, wholeLife } from './payment-events.ts';

/** Appends a whole life of a payment at once. */
export const appendLife = async (
  store: Pick<EventStore, 'append'>,
  paymentId: string,
  merchantId?: string,
): Promise<void> => {
  const events = wholeLife(paymentId, merchantId).map((event, n) => newEvent(event, timeOf(n)));
  await store.append(streamOf(paymentId), 'none', events);
};

/** Appends a whole life of each payment, taken in turns: a stream's events stand apart in the log. */
export const appendLives = async (
  store: EventStore,
  paymentIds: readonly string[],
): Promise<void> => {
  const lives = paymentIds.map((id) => ({ id, events: wholeLife(id) }));
  const ends = new Map<string, RecordedEvent>();
  for (let revision = 0; revision < wholeLife('pay_1').length; revision += 1) {
    const appends = lives.map(async ({ id, events }) => {
      const event = events[revision];
      const end = ends.get(id);
      if (event === undefined) return;
      const expected = end === undefined ? 'none' : { revision: end.revision, hash: end.hash };
      const stored = await store.append(streamOf(id), expected, [
        newEvent(event, timeOf(revision)),
      ]);
      for (const one of stored) ends.set(id, one);
    });
    await Promise.all(appends);
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
  return readModel && bodyOf(readModel);
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
