/**
 * Checks the sums of payments along a log or a stream (shared/payment/sums.ts). Only what the current
 * code can read is added up: the sums of a payment are not known after an event that it cannot read.
 */

import { paymentOf } from '../payment/payment-events.ts';
import { addSums, type PaymentSums } from '../payment/sums.ts';
import { createBoundedMap } from '../runtime/bounded-map.ts';
import { decode, isReadable } from './codec.ts';
import { isOfPayment } from './fold-stream.ts';
import type { LogEvent, StoredForms } from './port.ts';

/** The sums of a payment up to a revision. */
type Place = { revision: number; sums: PaymentSums | undefined | 'not known' };

const START: Place = { revision: -1, sums: undefined };

const step = ({ sums }: Place, event: LogEvent): Place & { reason?: string } => {
  const { revision } = event;
  if (sums === 'not known' || !isReadable(event)) return { revision, sums: 'not known' };
  if (!isOfPayment(event)) return { revision, sums };
  const added = addSums(sums, event.event);
  if ('sums' in added) return { revision, sums: added.sums };
  return { revision, sums: 'not known', reason: added.reason };
};

/** The first event of one whole stream whose sum cannot be, and why; undefined where there is none. */
export const sumsBreak = <E extends LogEvent>(
  events: readonly E[],
): { event: E; reason: string } | undefined => {
  let place = START;
  for (const event of events) {
    const { reason, ...next } = step(place, event);
    if (reason !== undefined) return { event, reason };
    place = next;
  }
  return undefined;
};

/** How many payments' sums stay in memory; any other is added up again from its stream. */
const PAYMENTS_KNOWN_MAX = 20_000;

/**
 * Checks the events of a whole log in their order, with other streams' in between. The check returns
 * why the sum of an event cannot be, once for each payment, and throws what `readStream` throws.
 */
export const sumsCheck = ({
  readStream,
}: Pick<StoredForms, 'readStream'>): ((event: LogEvent) => Promise<string | undefined>) => {
  const places = createBoundedMap<Place>(PAYMENTS_KNOWN_MAX);
  const placeBefore = async ({ stream, revision }: LogEvent): Promise<Place> => {
    const known = places.get(stream);
    if (known !== undefined) return known;
    if (revision === 0) return START;
    const before = (await readStream(stream)).filter((form) => form.revision < revision);
    return before.reduce<Place>((place, form) => step(place, decode(form)), START);
  };
  return async (event) => {
    if (paymentOf(event.stream) === undefined) return undefined;
    const before = await placeBefore(event);
    if (event.revision <= before.revision) return undefined;
    const { reason, ...place } = step(before, event);
    places.set(event.stream, place);
    return reason;
  };
};
