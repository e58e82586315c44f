/** W3C Trace Context. `tracestate` and `baggage` may hold any text of a client, and are ignored. */
import { looksLikeCard } from './card-numbers.ts';

export type TraceParent = { traceId: string; spanId: string; isSampled: boolean };

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const VERSION = '00';
const NO_VERSION = 'ff';
const ZEROS = /^0+$/;
const SAMPLED = 1;

/** Further parts of later versions are ignored. */
export const parseTraceparent = (text: unknown): TraceParent | undefined => {
  if (typeof text !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = FORM.exec(text) ?? [];
  if (version === undefined || version === NO_VERSION) return undefined;
  if (version === VERSION && more !== undefined) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
};

/** Rejects ids that could be a card number, because ids reach log and topics. */
export const receivedTraceparent = (text: unknown): TraceParent | undefined => {
  const place = parseTraceparent(text);
  // A whole header of 16 KiB would take 40 ms before any token is checked.
  if (place !== undefined && looksLikeCard(traceparentOf(place))) return undefined;
  return place;
};

export const traceparentOf = ({ traceId, spanId, isSampled }: TraceParent): string =>
  `${VERSION}-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;
