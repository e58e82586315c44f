/** Nothing acts before `startTracing`; callers check `isTracing` once, when composed. */
import {
  type Context,
  type ContextManager,
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { looksLikeCard, withoutLongNumbers } from './card-numbers.ts';

/** A closed list (docs/traces.md): no address, header, body, error message or name of a person. */
export const SPAN_ATTRIBUTES = {
  'http.request.method': 'string',
  'http.route': 'string',
  'http.response.status_code': 'number',
  /** A code of our error body or a failed connection, or an error's name. */
  'error.type': 'string',
  'db.system.name': 'string',
  'db.operation.name': 'string',
  'server.address': 'string',
  'messaging.system': 'string',
  'messaging.operation.type': 'string',
  'messaging.destination.name': 'string',
  'messaging.batch.message_count': 'number',
  'payments.payment_id': 'string',
  /** Of a provider call: APPROVED, DECLINED, NOT_SENT, UNKNOWN, … */
  'payments.outcome': 'string',
  'payments.attempt': 'number',
} as const;

type List = typeof SPAN_ATTRIBUTES;
type SpanAttributes = {
  [Name in keyof List]?: (List[Name] extends 'string' ? string : number) | undefined;
};

export const cleaned = (attributes: SpanAttributes): Record<string, string | number> => {
  const kept: Record<string, string | number> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined) continue;
    kept[name] = typeof value === 'string' ? withoutLongNumbers(value) : value;
  }
  return kept;
};

const CODE = /^[A-Za-z][A-Za-z0-9_]{0,63}$/;

/** Never the message, which may quote what it met. */
export const errorTypeOf = (error: unknown): string => {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  const known = [code, name].find((one) => typeof one === 'string' && CODE.test(one));
  return typeof known === 'string' ? known : 'Error';
};

export type { SpanContext };

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const VERSION = '00';
const NO_VERSION = 'ff';

const isSampled = ({ traceFlags }: SpanContext): boolean => (traceFlags & TraceFlags.SAMPLED) !== 0;

/** Further parts of later versions are ignored. */
export const parseTraceparent = (text: unknown): SpanContext | undefined => {
  const [, version, traceId = '', spanId = '', flags = '', more] = FORM.exec(String(text)) ?? [];
  if (version === NO_VERSION || (version === VERSION && more !== undefined)) return undefined;
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED;
  const place = { traceId, spanId, traceFlags, isRemote: true };
  return isSpanContextValid(place) ? place : undefined;
};

/** Rejects ids that could be a card number, because ids reach log and topics. */
export const receivedTraceparent = (text: unknown): SpanContext | undefined => {
  const place = parseTraceparent(text);
  // A whole header of 16 KiB would take 40 ms before any token is checked.
  return place !== undefined && looksLikeCard(traceparentOf(place)) ? undefined : place;
};

export const traceparentOf = (place: SpanContext): string =>
  `${VERSION}-${place.traceId}-${place.spanId}-0${isSampled(place) ? 1 : 0}`;

type SpanStart = {
  name: string;
  kind: keyof typeof SpanKind;
  attributes?: SpanAttributes;
  links?: readonly SpanContext[];
};

let tracer: Tracer | undefined;

export const isTracing = (): boolean => tracer !== undefined;

/** Call it once. */
export const startTracing = (provider: TracerProvider, contexts: ContextManager): void => {
  context.setGlobalContextManager(contexts.enable());
  tracer = provider.getTracer('payments');
};

export const stopTracing = (): void => {
  tracer = undefined;
  context.disable();
};

export type SpanCounts = { exported: number; dropped: number };

let counts: SpanCounts = { exported: 0, dropped: 0 };

/** Also those of a thread, which reports what it took. */
export const countSpans = ({ exported = 0, dropped = 0 }: Partial<SpanCounts>): void => {
  counts.exported += exported;
  counts.dropped += dropped;
};

/** Since the last call. */
export const takeSpanCounts = (): SpanCounts => {
  const taken = counts;
  counts = { exported: 0, dropped: 0 };
  return taken;
};

const note = (span: Span, attributes: SpanAttributes): void => {
  if (!span.isRecording()) return;
  span.setAttributes(cleaned(attributes));
  if (attributes['error.type'] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
};

const begin = (
  by: Tracer,
  { name, kind, attributes = {}, links = [] }: SpanStart,
  parent: Context,
) => {
  const options = { kind: SpanKind[kind], links: links.map((one) => ({ context: one })) };
  const span = by.startSpan(name, options, parent);
  note(span, attributes);
  const inside = trace.setSpan(parent, span);
  return {
    place: span.spanContext(),
    /** Its spans are below this one, also after it returns. */
    run: <T>(work: () => T): T => context.with(inside, work),
    /** `error.type` marks a failure. Call it once. */
    end: (last: SpanAttributes = {}): void => {
      note(span, last);
      span.end();
    },
  };
};
export type OpenSpan = ReturnType<typeof begin>;

/** Below `parent`, of another process or an earlier time, else a trace; undefined where this process makes no spans. */
export const startSpan = (start: SpanStart, parent: SpanContext | undefined) => {
  if (tracer === undefined) return undefined;
  const above = parent && trace.setSpanContext(ROOT_CONTEXT, parent);
  return begin(tracer, start, above ?? ROOT_CONTEXT);
};

export const currentPlace = (): SpanContext | undefined =>
  tracer && trace.getActiveSpan()?.spanContext();

/** By which another process continues the calling work's trace. */
export const currentTraceparent = (): string | undefined => {
  const place = currentPlace();
  return place && traceparentOf(place);
};

export const annotate = (attributes: SpanAttributes): void => {
  const active = tracer && trace.getActiveSpan();
  if (active !== undefined) note(active, attributes);
};

/** Later, an attempt is a trace of its own, linked to the event's. */
export const SAME_TRACE_MS = 3_600_000;

/** The span that a stored `traceparent` names; undefined where it is not sampled. */
export const sampledPlace = (text: string | undefined): SpanContext | undefined => {
  const place = parseTraceparent(text);
  return place !== undefined && isSampled(place) ? place : undefined;
};

/** `system`: the database by its OpenTelemetry name. */
export const databaseSpan = (system: string, operation: string, name: string): SpanStart => ({
  name,
  kind: 'CLIENT',
  attributes: { 'db.system.name': system, 'db.operation.name': operation },
});

/** Ends the span with the work. Throws its error. */
export const during = async <T>(
  span: OpenSpan | undefined,
  work: () => Promise<T>,
  described?: (result: T) => SpanAttributes,
): Promise<T> => {
  try {
    const result = await work();
    span?.end(described?.(result));
    return result;
  } catch (error) {
    span?.end({ 'error.type': errorTypeOf(error) });
    throw error;
  }
};

/** None where the caller's is not sampled. Throws the work's error. */
export const withSpan = async <T>(
  start: SpanStart,
  work: () => Promise<T>,
  described?: (result: T) => SpanAttributes,
): Promise<T> => {
  const place = currentPlace();
  if (tracer === undefined || place === undefined || !isSampled(place)) return work();
  const span = begin(tracer, start, context.active());
  return during(span, () => span.run(work), described);
};
