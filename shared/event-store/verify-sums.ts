import { EVENT_VERSIONS, isEventType, isPaymentEvent } from '../payment/events.ts';
import { type PaymentEvent, paymentOf } from '../payment/payment-events.ts';
import { addSums, type PaymentSums } from '../payment/sums.ts';
import { createGenerationsMap } from '../runtime/generations-map.ts';
import { decode, isReadable } from './codec.ts';
import type { LogEvent, RecordedEvent, StoredForm, StoredForms, UnreadableEvent } from './port.ts';
import { formsLeft } from './verify-chain.ts';

type SumsEvent = Pick<RecordedEvent, 'stream' | 'revision' | 'event'> | UnreadableEvent;

/** After an event that the current code cannot read, a payment's sums are not known. */
type Place = { revision: number; sums: PaymentSums | undefined | 'not known'; reason?: string };

const START: Place = { revision: -1, sums: undefined };

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

const isAmount = (value: unknown): boolean => Number.isSafeInteger(value);

/** The fields that the sums are made of; its schema asks for more. */
const hasSums = (data: Record<string, unknown>): boolean =>
  typeof data.operationId === 'string' &&
  isAmount(data.amount) &&
  typeof data.currency === 'string' &&
  (data.releasedAmount === undefined || isAmount(data.releasedAmount));

/** Decodes old forms alone: a whole decoding is mostly of other fields. */
export const sumsEventOf = (form: StoredForm, named: Record<string, unknown>): SumsEvent => {
  const { type, schemaVersion, data } = named;
  const isCurrent =
    typeof type === 'string' && isEventType(type) && schemaVersion === EVENT_VERSIONS[type];
  if (!isCurrent || !hasSums(Object(data))) return decode(form);
  const { stream, revision } = form;
  return { stream, revision, event: { type, data } as PaymentEvent };
};

/** In the log's order; one reason for each payment. Throws StoreUnavailable. */
export const sumsCheck = (
  stored: Pick<StoredForms, 'readStream'>,
): ((event: SumsEvent) => string | undefined | Promise<string | undefined>) => {
  const places = createGenerationsMap<Place>(PAYMENTS_KNOWN_MIN);
  const readBefore = async ({ stream, revision }: SumsEvent): Promise<Place> => {
    const before = (await formsLeft(stored, stream)).filter((form) => form.revision < revision);
    if (before.length === 0) return { revision: revision - 1, sums: 'not known' };
    return before.reduce<Place>((place, form) => step(place, decode(form)), START);
  };
  const checkAfter = (before: Place, event: SumsEvent): string | undefined => {
    if (event.revision <= before.revision) return undefined;
    const place = step(before, event);
    places.set(event.stream, place);
    return place.reason;
  };
  return (event) => {
    if (paymentOf(event.stream) === undefined) return undefined;
    if (!isReadable(event)) {
      places.set(event.stream, { revision: event.revision, sums: 'not known' });
      return undefined;
    }
    const known = places.get(event.stream) ?? (event.revision === 0 ? START : undefined);
    if (known !== undefined) return checkAfter(known, event);
    return readBefore(event).then((before) => checkAfter(before, event));
  };
};
