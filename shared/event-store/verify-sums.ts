import { isPaymentEvent } from '../payment/events.ts';
import { paymentOf } from '../payment/payment-events.ts';
import { addSums, type PaymentSums } from '../payment/sums.ts';
import { decode, isReadable } from './codec.ts';
import type { LogEvent, RecordedEvent, StoredForms, UnreadableEvent } from './port.ts';
import { createGenerationsMap, formsLeft } from './verify-chain.ts';

type SumsEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'event'> | UnreadableEvent;

/** After an event that the current code cannot read, a payment's sums are not known. */
type Place = { revision: number; sums: PaymentSums | undefined | 'not known'; reason?: string };

const START: Place = { revision: -1, sums: undefined };
const NOT_KNOWN: Place = { revision: -1, sums: 'not known' };

const step = ({ sums }: Place, event: SumsEvent): Place => {
  const { revision } = event;
  if (sums === 'not known' || !isReadable(event)) return { revision, sums: 'not known' };
  if (!isPaymentEvent(event.event)) return { revision, sums };
  const added = addSums(sums, event.event);
  if ('sums' in added) return { revision, sums: added.sums };
  return { revision, sums: 'not known', reason: added.reason };
};

export const sumsBreak = <E extends LogEvent>(
  events: readonly E[],
): { event: E; reason: string } | undefined => {
  let place = START;
  for (const event of events) {
    place = step(place, event);
    if (place.reason !== undefined) return { event, reason: place.reason };
  }
  return undefined;
};

/** Any other payment is added up again from its stream. */
const PAYMENTS_KNOWN_MIN = 10_000;

type Places = {
  get(stream: string): Place | undefined;
  set(stream: string, place: Place): unknown;
};

/** In the log's order; one reason for each payment. A stream that begins later is not added up. */
export const sumsOver =
  (places: Places = new Map()) =>
  (event: SumsEvent): string | undefined => {
    const { stream, revision } = event;
    if (paymentOf(stream) === undefined) return undefined;
    const known = places.get(stream) ?? (revision === 0 ? START : NOT_KNOWN);
    if (isReadable(event) && revision <= known.revision) return undefined;
    const place = step(known, event);
    places.set(stream, place);
    return place.reason;
  };

/** As `sumsOver`, within a bound. Throws StoreUnavailable. */
export const sumsCheck = (
  stored: Pick<StoredForms, 'readStream'>,
): ((event: SumsEvent) => string | undefined | Promise<string | undefined>) => {
  const places = createGenerationsMap<Place>(PAYMENTS_KNOWN_MIN);
  const check = sumsOver(places);
  const readBefore = async ({ stream, revision }: SumsEvent): Promise<Place> => {
    const before = (await formsLeft(stored, stream)).filter((form) => form.revision < revision);
    if (before.length === 0) return { ...NOT_KNOWN, revision: revision - 1 };
    return before.reduce<Place>((place, form) => step(place, decode(form)), START);
  };
  return (event) => {
    const { stream, revision } = event;
    const isKnown = revision === 0 || places.get(stream) !== undefined || !isReadable(event);
    if (isKnown || paymentOf(stream) === undefined) return check(event);
    return readBefore(event).then((before) => {
      places.set(stream, before);
      return check(event);
    });
  };
};
