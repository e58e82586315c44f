/**
 * How our events are stored in EventStoreDB. Data is the event's data, metadata the rest of what its hash
 * covers and the hash itself; id, type, stream and revision are the server's own fields. The client
 * returns parsed JSON and never bytes, so the hashed text is made again from them (RFC 8785).
 */
import { SEALS_STREAM } from '../../payment/seals-stream.ts';
import { WEBHOOK_STREAMS } from '../../payment/webhook-events.ts';
import { decodeParsed, type EncodedEvent, hashedText, isReadable, unreadableAt } from '../codec.ts';
import type { Position, RecordedEvent, StoredForm, UnreadableEvent } from '../port.ts';
import { FOREIGN, hashReason } from '../verify-chain.ts';

/** The streams that hold events of ours; no reader sees any other, such as a system stream. */
export const STREAM_PREFIXES = [
  'payment-',
  'merchant-reference-',
  'audit-',
  SEALS_STREAM,
  WEBHOOK_STREAMS,
] as const;

/** Before the name of a stream: the stream of its metadata. */
export const METADATA_OF = '$$';

/** The types of the events by which the server deletes or cuts a stream. */
export const CHANGED_TYPES = ['$metadata', '$streamDeleted'] as const;

const isOurStream = (stream: string): boolean =>
  STREAM_PREFIXES.some((prefix) => stream.startsWith(prefix));

/** True for an event of ours; the server puts events of its own, such as a tombstone, in our streams. */
export const isOurs = ({ streamId, type }: ServerEvent): boolean =>
  isOurStream(streamId) && !type.startsWith('$');

/** True for an event of one of these types; for any event where they are left out. */
export const isOfTypes = ({ type }: ServerEvent, types: readonly string[] | undefined): boolean =>
  types === undefined || types.includes(type);

/**
 * The stream of ours that an event of the server's own is about: it was deleted for good, or its
 * metadata changed, which deletes or cuts it as well. Undefined for any other event.
 */
export const changedAtServer = ({ streamId, type }: ServerEvent): string | undefined => {
  const stream = streamId.startsWith(METADATA_OF) ? streamId.slice(METADATA_OF.length) : streamId;
  return type.startsWith('$') && isOurStream(stream) ? stream : undefined;
};

/** True for metadata by which the server leaves out events of the stream. */
export const cutsStream = ({ data }: ServerEvent): boolean => {
  const { $tb = 0, $maxCount, $maxAge } = Object(data) as Record<string, number | undefined>;
  return $tb > 0 || $maxCount !== undefined || $maxAge !== undefined;
};

/** A place in the server's log. */
export type LogPosition = { commit: bigint; prepare: bigint };

/** The parts of the client's recorded event that are read here. */
export type ServerEvent = {
  streamId: string;
  id: string;
  revision: bigint;
  type: string;
  data: unknown;
  metadata?: unknown;
  position?: LogPosition | undefined;
};

const POSITION = /^(\d{1,19})\/(\d{1,19})$/;
// Servers say "none" with the largest unsigned number.
const POSITION_MAX = 2n ** 63n;

/** Empty where the server gave no position; reading after it then throws RangeError. */
export const positionText = (position: LogPosition | undefined): Position =>
  position === undefined || position.commit >= POSITION_MAX
    ? ''
    : `${position.commit}/${position.prepare}`;

/** Undefined for the start of the log. Throws RangeError for a text that is no position. */
export function parsePosition(position: Position | null): LogPosition | undefined {
  if (position === null) return undefined;
  const match = POSITION.exec(position);
  if (match === null) throw new RangeError('not a position');
  return { commit: BigInt(match[1] as string), prepare: BigInt(match[2] as string) };
}

/** Negative when `a` lies before `b`; an undefined place is the start. */
export function comparePositions(a: LogPosition | undefined, b: LogPosition | undefined): number {
  const [left, right] = [a ?? { commit: -1n, prepare: -1n }, b ?? { commit: -1n, prepare: -1n }];
  const difference = left.commit - right.commit || left.prepare - right.prepare;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** An event to be stored: data and metadata are the bytes of their JSON. */
export type Proposed = { id: string; type: string; data: Uint8Array; metadata: Uint8Array };

const utf8 = new TextEncoder();

/** An event to be stored, its JSON made before any call: nothing in a call can fail to serialize. */
export const proposed = (id: string, type: string, data: object, metadata: object): Proposed => ({
  id,
  type,
  data: utf8.encode(JSON.stringify(data)),
  metadata: utf8.encode(JSON.stringify(metadata)),
});

/** The event in the server's form. */
export function toServer({ recorded }: EncodedEvent): Proposed {
  const { id, event, context, hash, previousHash, schemaVersion, time } = recorded;
  const metadata = { context, hash, previousHash, schemaVersion, time };
  return proposed(id, event.type, event.data, metadata);
}

const metadataOf = ({ metadata }: ServerEvent): Record<string, unknown> => Object(metadata);

const hashed = (event: ServerEvent) => {
  const { context, previousHash, schemaVersion, time } = metadataOf(event);
  const { data, id, revision, streamId: stream, type } = event;
  const place = { stream, revision: Number(revision) };
  return { ...place, context, data, id, previousHash, schemaVersion, time, type };
};

/** The hash that is stored with an event; empty when there is none. */
export const hashOfRecord = (event: ServerEvent): string => String(metadataOf(event).hash ?? '');

/** The time that is stored with an event, or null when it has none. */
export const timeOfRecord = (event: ServerEvent): string | null => {
  const { time } = metadataOf(event);
  return typeof time === 'string' ? time : null;
};

/** The event as recorded. Never throws: one that cannot be read becomes an UnreadableEvent. */
export function fromServer(event: ServerEvent): RecordedEvent | UnreadableEvent {
  const place = { stream: event.streamId, revision: Number(event.revision) };
  const position = positionText(event.position);
  const hash = hashOfRecord(event);
  if (hash === '') return { ...place, position, unreadable: FOREIGN };
  return decodeParsed({ ...place, position, hash }, hashed(event));
}

/** The same, and its text has its hash: the server's own checks show no text that was written anew. */
export function verifiedFromServer(event: ServerEvent): RecordedEvent | UnreadableEvent {
  const recorded = fromServer(event);
  if (!isReadable(recorded)) return recorded;
  const reason = hashReason({ text: hashedText(hashed(event)), hash: recorded.hash });
  return reason === undefined ? recorded : unreadableAt(recorded, reason);
}

/** The event in its stored form, for exports and verification. */
export const storedFormOf = (event: ServerEvent): StoredForm => ({
  position: positionText(event.position),
  stream: event.streamId,
  revision: Number(event.revision),
  id: event.id,
  hash: hashOfRecord(event),
  text: hashedText(hashed(event)),
});
