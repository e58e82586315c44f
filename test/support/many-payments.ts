/** Logs of many whole payments, made quickly, and what their documents ought to be. */
import { foldStream } from '../../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/payment-events.ts';
import { bodyOf, foldReadModel } from '../../shared/payment/response.ts';
import { newEvent, timeOf, wholeLife } from './payment-events.ts';

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

/** The body of each payment by the fold of its stream. Throws where a stream cannot be folded. */
export const foldsOf = async (
  store: EventStore,
  paymentIds: readonly string[],
): Promise<Map<string, string>> => {
  const bodies = new Map<string, string>();
  for (const id of paymentIds) {
    const readModel = foldStream(await store.readStream(streamOf(id)), foldReadModel);
    if (readModel !== undefined) bodies.set(id, bodyOf(readModel));
  }
  return bodies;
};
