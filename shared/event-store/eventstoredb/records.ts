/** Our events there: metadata holds the hash and what it covers besides data and server's fields. */
import { SEALS_STREAM } from '../../payment/seal-events.ts';
import { WEBHOOK_STREAMS } from '../../payment/webhook-events.ts';
import { orElse } from '../../runtime/error-text.ts';
import { hashReason } from '../chain.ts';
import { canonicalJson, decode, type EncodedEvent, unreadableAt } from '../codec.ts';
import type { Position, RecordedEvent, StoredForm, UnreadableEvent } from '../port.ts';

export const STREAM_PREFIXES = [
  'payment-',
  'merchant-reference-',
  'audit-',
  SEALS_STREAM,
  WEBHOOK_STREAMS,
] as const;

export const METADATA_OF = '$$';

/** Their events have no hash, and are in no export; what the server does to them is told (gaps §29). */
const META_PREFIX = 'meta-';

export const WATCHED_PREFIXES: readonly string[] = [...STREAM_PREFIXES, META_PREFIX];

/** By these the server deletes or cuts a stream. */
export const CHANGED_TYPES = ['$metadata', '$streamDeleted'] as const;

const isOurStream = (stream: string): boolean =>
  STREAM_PREFIXES.some((prefix) => stream.startsWith(prefix));

const isOfServer = (type: string): boolean => (CHANGED_TYPES as readonly string[]).includes(type);

/** All in our streams but the two types of the server's own: whatever else stands there has to be told. */
export const isOurs = ({ streamId, type }: ServerEvent): boolean =>
  isOurStream(streamId) && !isOfServer(type);

export const isOfTypes = ({ type }: ServerEvent, types: readonly string[] | undefined): boolean =>
  types === undefined || types.includes(type);

/** Our stream that was deleted for good, or whose metadata changed, which may delete or cut it. */
export const changedAtServer = ({ streamId, type }: ServerEvent): string | undefined => {
  const stream = streamId.startsWith(METADATA_OF) ? streamId.slice(METADATA_OF.length) : streamId;
  const isWatched = isOurStream(stream) || stream.startsWith(META_PREFIX);
  return isOfServer(type) && isWatched ? stream : undefined;
};

export const cutsStream = ({ data }: ServerEvent): boolean => {
  const { $tb = 0, $maxCount, $maxAge } = Object(data) as Record<string, number | undefined>;
  return $tb > 0 || $maxCount !== undefined || $maxAge !== undefined;
};

export type LogPosition = { commit: bigint; prepare: bigint };

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
// Servers write "none" as the largest unsigned number.
const POSITION_MAX = 2n ** 63n;

/** Empty where the server gave none; reading after it throws RangeError. */
export const positionText = (position: LogPosition | undefined): Position =>
  position === undefined || position.commit >= POSITION_MAX
    ? ''
    : `${position.commit}/${position.prepare}`;

/** Undefined for the start. Throws RangeError for a text that is no position. */
export function parsePosition(position: Position | null): LogPosition | undefined {
  if (position === null) return undefined;
  const match = POSITION.exec(position);
  if (match === null) throw new RangeError('not a position');
  return { commit: BigInt(match[1] as string), prepare: BigInt(match[2] as string) };
}

export function comparePositions(a: LogPosition | undefined, b: LogPosition | undefined): number {
  const [left, right] = [a ?? { commit: -1n, prepare: -1n }, b ?? { commit: -1n, prepare: -1n }];
  const difference = left.commit - right.commit || left.prepare - right.prepare;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export type Proposed = { id: string; type: string; data: Uint8Array; metadata: Uint8Array };

const utf8 = new TextEncoder();

/** Nothing in a call can then fail to serialize. */
export const proposed = (id: string, type: string, data: object, metadata: object): Proposed => ({
  id,
  type,
  data: utf8.encode(JSON.stringify(data)),
  metadata: utf8.encode(JSON.stringify(metadata)),
});

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

export const hashOfRecord = (event: ServerEvent): string => String(metadataOf(event).hash ?? '');

export const timeOfRecord = (event: ServerEvent): string | null => {
  const { time } = metadataOf(event);
  return typeof time === 'string' ? time : null;
};

export const storedFormOf = (event: ServerEvent, fields = hashed(event)): StoredForm => ({
  position: positionText(event.position),
  stream: event.streamId,
  revision: fields.revision,
  id: event.id,
  hash: hashOfRecord(event),
  // Others may write what has no canonical form: it has no hash of ours either.
  text: orElse(undefined, () => canonicalJson(fields)) ?? JSON.stringify(fields),
});

/** By its text and hash: the server's own checks miss a text that was written anew. Never throws. */
export function fromServer(event: ServerEvent): RecordedEvent | UnreadableEvent {
  const fields = hashed(event);
  const form = storedFormOf(event, fields);
  const reason = hashReason(form);
  return reason === undefined ? decode(form, fields) : unreadableAt(form, reason);
}
