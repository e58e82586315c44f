/**
 * No other code turns events into stored text, canonical JSON (RFC 8785) of all that the hash covers (gaps §6),
 * and back. Read events are upcast, never hashed again; canonical order keeps bodies equal to the byte.
 */
import { configure } from 'safe-stable-stringify';
import { z } from 'zod';
import {
  type DomainEvent,
  EVENT_SCHEMAS,
  EVENT_VERSIONS,
  type EventType,
  isEventType,
  READ_SCHEMAS,
} from '../payment/events.ts';
import { CannotUpcast, type Upcast, upcast } from '../payment/upcast.ts';
import { compiledParse, type SafeParse } from '../runtime/compiled-schema.ts';
import { GENESIS_HASH, hashOf } from './chain.ts';
import { UnreadableStream } from './errors.ts';
import type { Expected, NewEvent, RecordedEvent, StoredForm, UnreadableEvent } from './port.ts';

const DEPTH_MAX = 1000;
const sorted = configure({ strict: true, maximumDepth: DEPTH_MAX });

/** Half a surrogate pair, in contrast to an escaped backslash before `ud…`. */
const LONE_SURROGATE = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/** True where `JSON.stringify` writes the canonical form: what a compiled schema has read is in that order. */
const isInOrder = (value: unknown, depth = 0): boolean => {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  if (depth === DEPTH_MAX) return false;
  if (Array.isArray(value)) return value.every((inner) => isInOrder(inner, depth + 1));
  let last = '';
  for (const name in value) {
    const inner = (value as Record<string, unknown>)[name];
    if (inner === undefined) continue;
    if (name < last || !isInOrder(inner, depth + 1)) return false;
    last = name;
  }
  return true;
};

/** Canonical JSON (RFC 8785). Throws for NaN, infinity, half a surrogate pair and a circular reference. */
export const canonicalJson = (value: unknown): string => {
  const json = isInOrder(value) ? JSON.stringify(value) : String(sorted(value));
  if (json.includes('\\ud') && LONE_SURROGATE.test(json))
    throw new Error('half a surrogate pair has no canonical form');
  return json;
};

type StoredPlace = Omit<StoredForm, 'text'>;

export type EncodedEvent = { text: string; recorded: Omit<RecordedEvent, 'position'> };

// `$`, empty and very long names mean something of their own in some stores.
const STREAM_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,199}$/;

const text = z.string().min(1).max(255);
const envelopeShape = {
  id: z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
  time: z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
};
// Absent in events from before traces, and in those of untraced requests.
const contextShape = {
  actor: text,
  causationId: text,
  correlationId: text,
  requestId: text,
  traceparent: text.optional(),
};
const newEnvelope = z.object({ ...envelopeShape, context: z.strictObject(contextShape) });
const storedEnvelope = z.object({
  ...envelopeShape,
  context: z.object(contextShape),
  stream: z.string(),
  revision: z.int(),
  previousHash: z.string(),
  type: z.string(),
  schemaVersion: z.int().min(1),
  data: z.unknown(),
});

/** A schema that is not strict drops a later version's fields. */
function loosened(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional) return z.optional(loosened(schema.unwrap()));
  if (schema instanceof z.ZodArray)
    return schema.clone({ ...schema.def, element: loosened(schema.element) });
  if (!(schema instanceof z.ZodObject)) return schema;
  const fields = Object.entries(schema.shape);
  return z.object(Object.fromEntries(fields.map(([name, inner]) => [name, loosened(inner)])));
}

const parseNewEnvelope = compiledParse(newEnvelope);
const parseStoredEnvelope = compiledParse(storedEnvelope);

class Misfit extends Error {}

/** Throws Misfit, which names the fields that do not fit, never their values. */
function conform<T>(parse: SafeParse<T>, value: unknown): T {
  const result = parse(value);
  if (result.success) return result.data;
  const places = result.error.issues.map(({ path }) => path.join('.') || 'the object itself');
  throw new Misfit(`does not fit its schema at ${places.slice(0, 5).join(', ')}`);
}

/** Makes events of checked data; each throws Misfit. */
function eventsOf(schemaOf: (type: EventType) => z.core.$ZodType) {
  const made: Partial<Record<EventType, SafeParse<unknown>>> = {};
  return (type: EventType, data: unknown): DomainEvent => {
    made[type] ??= compiledParse(schemaOf(type));
    return { type, data: conform(made[type], data) } as DomainEvent;
  };
}
const strictEvent = eventsOf((type) => EVENT_SCHEMAS[type]);
const looseEvent = eventsOf((type) => loosened(READ_SCHEMAS[type]));

/** Throws TypeError for the caller's bug, and Error for text with half a surrogate pair. */
export function encode(stream: string, expected: Expected, events: NewEvent[]): EncodedEvent[] {
  if (!STREAM_NAME.test(stream)) throw new TypeError('not a name for a stream');
  if (events.length === 0) throw new TypeError('an append needs at least one event');
  let last = expected === 'none' ? { revision: -1, hash: GENESIS_HASH } : expected;
  // A server would take another number for any place.
  const isPlace =
    Number.isSafeInteger(last.revision) && (last.revision >= 0 || expected === 'none');
  if (!isPlace || typeof last.hash !== 'string')
    throw new TypeError('an append needs the revision and the hash of the event that it follows');
  return events.map((given) => {
    const { event, context, id, time } = check(given);
    const { type, data } = event;
    const previousHash = last.hash;
    const revision = last.revision + 1;
    const schemaVersion = EVENT_VERSIONS[type];
    const place = { id, previousHash, revision, schemaVersion, stream, time };
    const text = canonicalJson({ context, data, ...place, type });
    const recorded = { ...place, context, event, hash: hashOf(text) };
    last = recorded;
    return { text, recorded };
  });
}

function check({ event: { type, data }, id, time, context }: NewEvent): NewEvent {
  if (!isEventType(type)) throw new TypeError('an event of an unknown type');
  try {
    const event = strictEvent(type, data);
    return { event, ...conform(parseNewEnvelope, { id, time, context }) };
  } catch (error) {
    throw error instanceof Misfit ? new TypeError(`${type} ${error.message}`) : error;
  }
}

/**
 * Upcasts, and checks loosely: it leaves out an unknown field. Never throws on a stored text. `hashed`: the
 * parsed text, where it is known.
 */
export function decode(
  stored: StoredForm,
  hashed?: unknown,
  toCurrent: Upcast = upcast,
): RecordedEvent | UnreadableEvent {
  try {
    return read(stored, hashed ?? JSON.parse(stored.text), toCurrent);
  } catch (error) {
    // A parser's or a hop's message may quote the stored text.
    const isKnown = error instanceof Misfit || error instanceof CannotUpcast;
    return unreadableAt(stored, isKnown ? error.message : 'is not JSON, or its upcast failed');
  }
}

export function unreadableAt(
  { stream, revision, position, hash, logHash }: StoredPlace,
  unreadable: string,
): UnreadableEvent {
  const event: UnreadableEvent = { stream, revision, position, unreadable, hash };
  if (logHash !== undefined) event.logHash = logHash;
  return event;
}

function read(stored: StoredPlace, hashed: unknown, toCurrent: Upcast): RecordedEvent {
  const { position, hash, logHash } = stored;
  const { type, data, ...envelope } = conform(parseStoredEnvelope, hashed);
  if (envelope.stream !== stored.stream || envelope.revision !== stored.revision)
    throw new Misfit('belongs to another place');
  if (!isEventType(type))
    throw new Misfit(`has the unknown type ${/^\w{1,64}$/.test(type) ? type : '(odd name)'}`);
  const event = looseEvent(type, toCurrent(type, envelope.schemaVersion, data));
  const recorded: RecordedEvent = { ...envelope, position, hash, event };
  if (logHash !== undefined) recorded.logHash = logHash;
  return recorded;
}

export const isReadable = <E extends object>(event: E): event is Exclude<E, UnreadableEvent> =>
  !('unreadable' in event);

/** Throws UnreadableStream, with the events before the first that cannot be read. */
export function allReadable(events: readonly (RecordedEvent | UnreadableEvent)[]): RecordedEvent[] {
  return events.map((event, at) => {
    if (isReadable(event)) return event;
    const { stream, revision, unreadable } = event;
    const before = events.slice(0, at).filter(isReadable);
    const place = `${stream}, revision ${revision}`;
    throw new UnreadableStream(`${place}: ${unreadable}`, before, unreadable);
  });
}

export const expectedAfter = (
  last: Pick<RecordedEvent, 'revision' | 'hash'> | undefined,
): Expected => (last === undefined ? 'none' : { revision: last.revision, hash: last.hash });

/** RFC 3339 with milliseconds: the wall clock, but never before the last event. */
export const timeAfter = (
  last: Pick<RecordedEvent, 'time'> | undefined,
  nowMs = Date.now(),
): string => {
  const now = new Date(nowMs).toISOString();
  return last !== undefined && now < last.time ? last.time : now;
};
