/**
 * Spans of what this process does, for the tracing tool of its operators. The only file that imports the
 * API of OpenTelemetry. Nothing here does anything before `startTracing`, which traces.ts calls where
 * the settings name a collector: callers ask `isTracing` once, when they are put together, and are
 * as they were without it.
 */
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
import { cleaned, errorTypeOf, type SpanAttributes } from './span-attributes.ts';
import { type TraceParent, traceparentOf } from './traceparent.ts';

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};
type Kind = keyof typeof KINDS;

/** A span that has begun. One that is not sampled has its ids and keeps nothing else. */
export type OpenSpan = {
  place: TraceParent;
  /** Runs work whose own spans are below this one, also what it begins and does not wait for. */
  run<T>(work: () => T): T;
  /** With `error.type` the span is one of a failure. Call it once. */
  end(attributes?: SpanAttributes): void;
};

export type SpanStart = {
  /** Of our code, with no id in it. */
  name: string;
  kind: Kind;
  /** Where another process, or an earlier time, has begun the trace; undefined begins one. */
  parent: TraceParent | undefined;
  /** Further places that it belongs to. */
  links?: readonly TraceParent[];
  attributes: SpanAttributes;
};

/** How many spans were handed to the collector, and how many could not be, since the start. */
export type SpanCounts = { exported: number; dropped: number };

let tracer: Tracer | undefined;
let counts: Readonly<SpanCounts> = { exported: 0, dropped: 0 };
const ofThreads = { exported: 0, dropped: 0 };

/** True once a collector's address is in use. */
export const isTracing = (): boolean => tracer !== undefined;

/** Makes spans from now on. `counted` goes on counting. Once for a process. */
export const startTracing = (
  provider: TracerProvider,
  contexts: ContextManager,
  counted: Readonly<SpanCounts>,
): void => {
  context.setGlobalContextManager(contexts.enable());
  tracer = provider.getTracer('payments');
  counts = counted;
};

/** Makes no more spans. */
export const stopTracing = (): void => {
  tracer = undefined;
  context.disable();
};

/** Of this process: its threads hand theirs over with `countSpans`. */
export const spanCounts = (): Readonly<SpanCounts> => ({
  exported: counts.exported + ofThreads.exported,
  dropped: counts.dropped + ofThreads.dropped,
});

/** Adds what a thread of this process has counted since it last did. */
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

/** Begins a span below `parent`, else a trace; undefined where this process makes no spans. */
export const startSpan = (start: SpanStart): OpenSpan | undefined => {
  if (tracer === undefined) return undefined;
  const { parent } = start;
  const above = parent && trace.setSpanContext(ROOT_CONTEXT, contextOf(parent));
  return begin(tracer, start, above ?? ROOT_CONTEXT);
};

/** The place of the work that calls this; undefined where it belongs to no trace. */
export const currentPlace = (): TraceParent | undefined => {
  const active = tracer && trace.getActiveSpan()?.spanContext();
  return active && placeOf(active);
};

/** The text by which what comes of this work goes on with its trace. */
export const currentTraceparent = (): string | undefined => {
  const place = currentPlace();
  return place && traceparentOf(place);
};

/** Adds to the span of the work that calls this, where there is one. */
export const annotate = (attributes: SpanAttributes): void => {
  const active = tracer && trace.getActiveSpan();
  if (active !== undefined) note(active, attributes);
};

/**
 * Runs work in a span below that of its caller; without a span where the caller has none that is
 * kept. `described` gives what its result adds. Throws what the work throws.
 */
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
