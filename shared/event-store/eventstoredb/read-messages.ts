import type { EventType } from '../../payment/events.ts';
import { orElse } from '../../runtime/error-text.ts';
import {
  bigintOf,
  idOf,
  readMessage,
  readRequestMessage,
  type Sent64,
  type SentId,
  type SentPosition,
  serverPosition,
} from './protocol.ts';
import {
  CHANGED_TYPES,
  type LogPosition,
  METADATA_OF,
  type ServerEvent,
  STREAM_PREFIXES,
  WATCHED_PREFIXES,
} from './records.ts';

/** The server sends a checkpoint after passing over a multiple of so many events. */
export const PASSED_OVER_MAX = 1000;
const CHECKPOINT_INTERVAL = 32;

// The server writes deletions and truncations to the stream of the metadata.
const FOLLOWED_PREFIXES = WATCHED_PREFIXES.flatMap((prefix) => [prefix, `${METADATA_OF}${prefix}`]);

type ReadFrom = LogPosition | 'end' | undefined;
type Filter = Partial<Record<'streams' | 'types', { prefixes: readonly string[] }>>;

const fromOf = (from: ReadFrom): object => {
  if (from === undefined) return { start: {} };
  if (from === 'end') return { end: {} };
  return { position: { commit: String(from.commit), prepare: String(from.prepare) } };
};

const requestOf = (from: ReadFrom, filter: Filter | undefined, rest: object): Buffer => {
  const which =
    filter === undefined
      ? { everything: {} }
      : { filter: { ...filter, max: PASSED_OVER_MAX, interval: CHECKPOINT_INTERVAL } };
  const options = { all: fromOf(from), ids: { text: {} }, ...which, ...rest };
  return readRequestMessage.encode({ options }).finish() as Buffer;
};

/** All our streams, or types of events: the server filters by one of the two alone. */
export const subscriptionOf = (
  from: LogPosition | undefined,
  types: readonly EventType[] | undefined,
): Buffer => {
  const filter =
    types === undefined
      ? { streams: { prefixes: FOLLOWED_PREFIXES } }
      : { types: { prefixes: [...types, ...CHANGED_TYPES] } };
  return requestOf(from, filter, { subscription: {} });
};

export type LogRead = {
  /** Of our streams alone the server passes over all others. */
  whose: 'ours' | 'all';
  direction: 'forwards' | 'backwards';
  /** Forwards with the event there, backwards without it; undefined is the start. */
  from: ReadFrom;
  count: number;
};

export const logReadOf = ({ whose, direction, from, count }: LogRead): Buffer => {
  const filter = whose === 'all' ? undefined : { streams: { prefixes: STREAM_PREFIXES } };
  return requestOf(from, filter, { direction: direction === 'forwards' ? 0 : 1, count });
};

const parsed = (text: string): unknown => orElse(text, () => JSON.parse(text));

type Sent = SentPosition & {
  id: SentId;
  stream: { name: string } | null;
  revision: Sent64;
  headers: Record<string, string>;
  metadata: Buffer;
  data: Buffer;
};

/** A sign has one of the three. */
type Sign = Record<'confirmed' | 'caughtUp' | 'fellBehind', object | null>;
export type ReadResponse = ServerEvent | Sign;

/** Throws RangeError for other bytes. */
export function readResponseOf(bytes: Buffer): ReadResponse {
  const response = readMessage.decode(bytes) as unknown as Sign & {
    resolved: { event: Sent | null } | null;
  };
  if (!response.resolved?.event) return response;
  const { id, headers, data, metadata, revision, stream, ...position } = response.resolved.event;
  return {
    streamId: stream?.name ?? '',
    id: idOf(id),
    revision: bigintOf(revision),
    type: headers.type ?? '',
    data: headers['content-type'] === 'application/json' ? parsed(String(data)) : String(data),
    metadata: parsed(String(metadata)),
    position: serverPosition(position),
  };
}
