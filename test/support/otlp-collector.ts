/** A collector of traces: takes OTLP over HTTP and keeps the spans, as far as tests look at them. */
import { buffer } from 'node:stream/consumers';
import protobuf from 'protobufjs';
import { httpServer } from './faulty-server.ts';

/** Of opentelemetry-proto, trace.proto. */
const { root } = protobuf.parse(`syntax = "proto3";
  message Request { repeated ResourceSpans resourceSpans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scopeSpans = 2; }
  message Resource { repeated Attribute attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes traceId = 1;
    bytes spanId = 2;
    bytes parentSpanId = 4;
    string name = 5;
    repeated Attribute attributes = 9;
  }
  message Attribute { string key = 1; Value value = 2; }
  message Value { string stringValue = 1; int64 intValue = 3; }`);
const Request = root.lookupType('Request');

type Attribute = { key: string; value: { stringValue?: string; intValue?: number } };
type Span = {
  traceId: Buffer;
  spanId: Buffer;
  parentSpanId?: Buffer;
  name: string;
  attributes: Attribute[];
};
type Sent = {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: Span[] }[] }[];
};

const attributesOf = (attributes: readonly Attribute[]) =>
  Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.intValue ?? value.stringValue ?? '']),
  );

const spanOf = (span: Span, process: string) => ({
  traceId: span.traceId.toString('hex'),
  id: span.spanId.toString('hex'),
  parentId: span.parentSpanId?.toString('hex'),
  name: span.name,
  /** `payments.process` of the resource. */
  process,
  attributes: attributesOf(span.attributes),
});

export type CollectedSpan = ReturnType<typeof spanOf>;

const spansOf = (body: Buffer): CollectedSpan[] => {
  const sent = Request.toObject(Request.decode(body), { longs: Number, arrays: true }) as Sent;
  return sent.resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const process = String(attributesOf(resource.attributes)['payments.process']);
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => spanOf(span, process)));
  });
};

export type Collector = Awaited<ReturnType<typeof startCollector>>;

export const startCollector = async () => {
  const bodies: Buffer[] = [];
  let requests = 0;
  const server = await httpServer(async (request, response) => {
    requests += 1;
    const body = await buffer(request);
    if (collector.mode === 'hangs') return;
    bodies.push(body);
    collector.spans.push(...spansOf(body));
    response.writeHead(200).end();
  });
  const collector = {
    /** What OTEL_EXPORTER_OTLP_ENDPOINT is set to. */
    url: server.url,
    spans: [] as CollectedSpan[],
    /** `hangs`: takes requests and never responds. */
    mode: 'takes' as 'takes' | 'hangs',
    /** Everything it was sent, to be searched. */
    bytes: () => Buffer.concat(bodies),
    requests: () => requests,
    [Symbol.asyncDispose]: server.close,
  };
  return collector;
};
