/**
 * The text that carries a trace from one process to the next (W3C Trace Context, header
 * `traceparent`). Only these three values are taken from it: `tracestate` and `baggage` may hold any
 * text of a client, and are left out.
 */
import { looksLikeCard } from './card-numbers.ts';

/** A place in a trace: 32 and 16 hexadecimal digits, and whether its spans are kept. */
export type TraceParent = { traceId: string; spanId: string; isSampled: boolean };

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const VERSION = '00';
const NO_VERSION = 'ff';
const ZEROS = /^0+$/;
const SAMPLED = 1;

/**
 * The place that a text names; undefined for a text that W3C calls invalid. A version after 00 may
 * have further parts, which are not looked at.
 */
export const parseTraceparent = (text: unknown): TraceParent | undefined => {
  if (typeof text !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = '', more] = FORM.exec(text) ?? [];
  if (version === undefined || version === NO_VERSION) return undefined;
  if (version === VERSION && more !== undefined) return undefined;
  if (ZEROS.test(traceId) || ZEROS.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED };
};

/**
 * `parseTraceparent` for a text that a client has sent. Ids that could be a card number are no ids to
 * go on with: they would reach the log, the topics and other systems.
 */
export const receivedTraceparent = (text: unknown): TraceParent | undefined => {
  const place = parseTraceparent(text);
  // What goes on is searched, not the text: a header of 16 KiB would take 40 ms before any token is checked.
  if (place !== undefined && looksLikeCard(traceparentOf(place))) return undefined;
  return place;
};

/** The text for a place. */
export const traceparentOf = ({ traceId, spanId, isSampled }: TraceParent): string =>
  `${VERSION}-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;
