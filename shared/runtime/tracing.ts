/** Nothing acts before `startTracing`; callers check `isTracing` once, when composed. */
import {
  type Context,
  type ContextManager,
  context,
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
export type SpanAttributes = {
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

const traceparentOf = ({ traceId, spanId, isSampled }: TraceParent): string =>
  `${VERSION}-${traceId}-${spanId}-0${isSampled ? 1 : 0}`;

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};
type Kind = keyof typeof KINDS;

export type OpenSpan = {
  place: TraceParent;
  /** Its spans are below this one, also after it returns. */
  run<T>(work: () => T): T;
  /** `error.type` marks a failure. Call it once. */
  end(attributes?: SpanAttributes): void;
};

type SpanStart = {
  name: string;
  kind: Kind;
  /** In a trace of another process or an earlier time; undefined begins one. */
  parent: TraceParent | undefined;
  links?: readonly TraceParent[];
  attributes: SpanAttributes;
};

export type SpanCounts = { exported: number; dropped: number };

let tracer: Tracer | undefined;
let counts: Readonly<SpanCounts> = { exported: 0, dropped: 0 };
const ofThreads = { exported: 0, dropped: 0 };

export const isTracing = (): boolean => tracer !== undefined;

/** Call it once. `counted` is read at each `spanCounts`. */
export const startTracing = (
  provider: TracerProvider,
  contexts: ContextManager,
  counted: Readonly<SpanCounts>,
): void => {
  context.setGlobalContextManager(contexts.enable());
  tracer = provider.getTracer('payments');
  counts = counted;
};

export const stopTracing = (): void => {
  tracer = undefined;
  context.disable();
};

/** Also of threads, which report theirs with `countSpans`. */
export const spanCounts = (): Readonly<SpanCounts> => ({
  exported: counts.exported + ofThreads.exported,
  dropped: counts.dropped + ofThreads.dropped,
});

export const countSpans = ({ exported, dropped }: Readonly<SpanCounts>): void => {
  ofThreads.exported += exported;
  ofThreads.dropped += dropped;
};

const placeOf = ({ traceId, spanId, traceFlags }: SpanContext): TraceParent => ({
  traceId,
  spanId,
  isSampled: (traceFlags & TraceFlags.SAMPLED) !== 0,
});

const contextOf = ({ traceId, spanId, isSampled }: TraceParent): SpanContext => ({
  traceId,
  spanId,
  traceFlags: isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
  isRemote: true,
});

const note = (span: Span, attributes: SpanAttributes): void => {
  if (!span.isRecording()) return;
  span.setAttributes(cleaned(attributes));
  if (attributes['error.type'] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR });
};

const begin = (
  by: Tracer,
  { name, kind, links = [], attributes }: SpanStart,
  parent: Context,
): OpenSpan => {
  const options = { kind: KINDS[kind], links: links.map((one) => ({ context: contextOf(one) })) };
  const span = by.startSpan(name, options, parent);
  note(span, attributes);
  const inside = trace.setSpan(parent, span);
  return {
    place: placeOf(span.spanContext()),
    run: (work) => context.with(inside, work),
    end: (last = {}) => {
      note(span, last);
      span.end();
    },
  };
};

/** Below `parent`, else a trace; undefined where this process makes no spans. */
export const startSpan = (start: SpanStart): OpenSpan | undefined => {
  if (tracer === undefined) return undefined;
  const { parent } = start;
  const above = parent && trace.setSpanContext(ROOT_CONTEXT, contextOf(parent));
  return begin(tracer, start, above ?? ROOT_CONTEXT);
};

export const currentPlace = (): TraceParent | undefined => {
  const active = tracer && trace.getActiveSpan()?.spanContext();
  return active && placeOf(active);
};

/** By which another process continues the calling work's trace. */
export const currentTraceparent = (): string | undefined => {
  const place = currentPlace();
  return place && traceparentOf(place);
};

export const annotate = (attributes: SpanAttributes): void => {
  const active = tracer && trace.getActiveSpan();
  if (active !== undefined) note(active, attributes);
};

/** None where the caller's is not sampled. Throws the work's error. */
export const withSpan = async <T>(
  { name, kind, attributes }: Pick<SpanStart, 'name' | 'kind' | 'attributes'>,
  work: () => Promise<T>,
  described?: (result: T) => SpanAttributes,
): Promise<T> => {
  if (tracer === undefined || currentPlace()?.isSampled !== true) return work();
  const span = begin(tracer, { name, kind, attributes, parent: undefined }, context.active());
  try {
    const result = await span.run(work);
    span.end(described?.(result));
    return result;
  } catch (error) {
    span.end({ 'error.type': errorTypeOf(error) });
    throw error;
  }
};
