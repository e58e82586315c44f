/**
 * A collector of traces: takes OTLP over HTTP and keeps the spans. It reads as much of the protobuf
 * messages as the tests look at (opentelemetry-proto, trace.proto).
 */
import { buffer } from 'node:stream/consumers';
import { httpServer } from './faulty-server.ts';

export type CollectedSpan = {
  traceId: string;
  id: string;
  parentId: string | undefined;
  name: string;
  /** `payments.process` of the resource. */
  process: string;
  startMs: number;
  endMs: number;
  attributes: Record<string, string | number>;
  /** The traces that it is linked to. */
  links: string[];
};

export type Collector = {
  /** What OTEL_EXPORTER_OTLP_ENDPOINT is set to. */
  url: string;
  spans: CollectedSpan[];
  /** Everything it was sent, to be searched. */
  bytes(): Buffer;
  /** `hangs`: takes requests and never responds. */
  mode: 'takes' | 'hangs';
  requests(): number;
  [Symbol.asyncDispose](): Promise<void>;
};

type Field = { number: number; value: Buffer | bigint };

const varint = (bytes: Buffer, at: number): { value: bigint; next: number } => {
  let value = 0n;
  for (let next = at, shift = 0n; ; next += 1, shift += 7n) {
    const byte = bytes[next] ?? 0;
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, next: next + 1 };
  }
};

/** The fields of a message. Throws RangeError for a wire type that none of ours has. */
const fieldsOf = (bytes: Buffer): Field[] => {
  const fields: Field[] = [];
  let at = 0;
  while (at < bytes.length) {
    const { value: key, next } = varint(bytes, at);
    const number = Number(key >> 3n);
    const wire = Number(key & 7n);
    if (wire === 0) {
      const { value, next: end } = varint(bytes, next);
      fields.push({ number, value });
      at = end;
    } else if (wire === 1 || wire === 5) {
      const length = wire === 1 ? 8 : 4;
      fields.push({ number, value: bytes.subarray(next, next + length) });
      at = next + length;
    } else if (wire === 2) {
      const { value: length, next: from } = varint(bytes, next);
      at = from + Number(length);
      fields.push({ number, value: bytes.subarray(from, at) });
    } else throw new RangeError(`wire type ${wire}`);
  }
  return fields;
};

const inside = (fields: readonly Field[], number: number): Buffer[] =>
  fields.flatMap((field) =>
    field.number === number && Buffer.isBuffer(field.value) ? [field.value] : [],
  );
const textIn = (fields: readonly Field[], number: number): string =>
  inside(fields, number)[0]?.toString() ?? '';
const hexIn = (fields: readonly Field[], number: number): string =>
  inside(fields, number)[0]?.toString('hex') ?? '';
const msIn = (fields: readonly Field[], number: number): number =>
  Number(inside(fields, number)[0]?.readBigUInt64LE() ?? 0n) / 1e6;

/** AnyValue: 1 is a text, 3 a whole number; the tests need no others. */
const anyValueOf = (fields: readonly Field[]): string | number => {
  const whole = fields.find(({ number }) => number === 3)?.value;
  return typeof whole === 'bigint' ? Number(whole) : textIn(fields, 1);
};

const attributesIn = (fields: readonly Field[], number: number): Record<string, string | number> =>
  Object.fromEntries(
    inside(fields, number)
      .map(fieldsOf)
      .map((pair) => [textIn(pair, 1), anyValueOf(inside(pair, 2).flatMap(fieldsOf))]),
  );

const spanOf = (fields: readonly Field[], process: string): CollectedSpan => ({
  traceId: hexIn(fields, 1),
  id: hexIn(fields, 2),
  parentId: hexIn(fields, 4) || undefined,
  name: textIn(fields, 5),
  process,
  startMs: msIn(fields, 7),
  endMs: msIn(fields, 8),
  attributes: attributesIn(fields, 9),
  links: inside(fields, 13).map((link) => hexIn(fieldsOf(link), 1)),
});

const spansOf = (body: Buffer): CollectedSpan[] =>
  inside(fieldsOf(body), 1)
    .map(fieldsOf)
    .flatMap((ofResource) => {
      const [resource = Buffer.alloc(0)] = inside(ofResource, 1);
      const process = String(attributesIn(fieldsOf(resource), 1)['payments.process']);
      const scopes = inside(ofResource, 2).map(fieldsOf);
      return scopes.flatMap((scope) =>
        inside(scope, 2).map((span) => spanOf(fieldsOf(span), process)),
      );
    });

export const startCollector = async (): Promise<Collector> => {
  const bodies: Buffer[] = [];
  let requests = 0;
  const collector: Pick<Collector, 'spans' | 'mode'> = { spans: [], mode: 'takes' };
  const server = await httpServer(async (request, response) => {
    requests += 1;
    const body = await buffer(request);
    if (collector.mode === 'hangs') return;
    bodies.push(body);
    collector.spans.push(...spansOf(body));
    response.writeHead(200).end();
  });
  return Object.assign(collector, {
    url: server.url,
    bytes: () => Buffer.concat(bodies),
    requests: () => requests,
    [Symbol.asyncDispose]: server.close,
  });
};
