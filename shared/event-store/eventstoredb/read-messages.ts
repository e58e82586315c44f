/** The client's classes write a subscription's request; we read events as bytes (ADR-0007). */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EventType } from '../../payment/events.ts';
import {
  bigintOf,
  idOf,
  positionOf,
  readMessage,
  type Sent64,
  type SentId,
  type SentPosition,
} from './protocol.ts';
import {
  CHANGED_TYPES,
  type LogPosition,
  METADATA_OF,
  type ServerEvent,
  STREAM_PREFIXES,
  WATCHED_PREFIXES,
} from './records.ts';

const { Options } = streamsPb.ReadReq;
const { Empty } = sharedPb;

/** The server sends a checkpoint after passing over a multiple of so many events. */
export const PASSED_OVER_MAX = 1000;
const CHECKPOINT_INTERVAL = 32;

// The server writes deletions and truncations to the stream of the metadata.
const FOLLOWED_PREFIXES = WATCHED_PREFIXES.flatMap((prefix) => [prefix, `${METADATA_OF}${prefix}`]);

type By = 'setStreamIdentifier' | 'setEventType';

const filterBy = (by: By, prefixes: readonly string[]) =>
  new Options.FilterOptions()[by](
    new Options.FilterOptions.Expression().setPrefixList([...prefixes]),
  );

function allFrom(
  from: LogPosition | 'end' | undefined,
  filter: ReturnType<typeof filterBy> | undefined,
) {
  const all = new Options.AllOptions();
  if (from === undefined) all.setStart(new Empty());
  else if (from === 'end') all.setEnd(new Empty());
  else {
    const position = new Options.Position();
    position.setCommitPosition(String(from.commit));
    position.setPreparePosition(String(from.prepare));
    all.setPosition(position);
  }
  const options = new Options();
  options.setAll(all);
  options.setUuidOption(new Options.UUIDOption().setString(new Empty()));
  if (filter === undefined) return options.setNoFilter(new Empty());
  filter.setMax(PASSED_OVER_MAX);
  filter.setCheckpointintervalmultiplier(CHECKPOINT_INTERVAL);
  return options.setFilter(filter);
}

/** All our streams, or types of events: the server filters by one of the two alone. */
export const subscriptionOf = (
  from: LogPosition | undefined,
  types: readonly EventType[] | undefined,
) => {
  const filter =
    types === undefined
      ? filterBy('setStreamIdentifier', FOLLOWED_PREFIXES)
      : filterBy('setEventType', [...types, ...CHANGED_TYPES]);
  const options = allFrom(from, filter).setSubscription(new Options.SubscriptionOptions());
  return new streamsPb.ReadReq().setOptions(options);
};

export type LogRead = {
  /** Of our streams alone the server passes over all others. */
  whose: 'ours' | 'all';
  direction: 'forwards' | 'backwards';
  /** Forwards with the event there, backwards without it; undefined is the start. */
  from: LogPosition | 'end' | undefined;
  count: number;
};

export const logReadOf = ({ whose, direction, from, count }: LogRead) => {
  const filter = whose === 'all' ? undefined : filterBy('setStreamIdentifier', STREAM_PREFIXES);
  const options = allFrom(from, filter);
  options.setReadDirection(direction === 'forwards' ? 0 : 1).setCount(String(count));
  return new streamsPb.ReadReq().setOptions(options);
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Sent = SentPosition & {
  id: SentId;
  stream: { name: string } | null;
  revision: Sent64;
  headers: Record<string, string>;
  metadata: Buffer;
  data: Buffer;
};

/** `read` never throws. */
export type SentEvent = { id: string; position: LogPosition; read(): ServerEvent };

/** Undefined where the response holds no event. Throws RangeError for other bytes. */
export function sentEventOf(bytes: Buffer): SentEvent | undefined {
  const { resolved } = readMessage.decode(bytes) as unknown as {
    resolved: { event: Sent | null } | null;
  };
  if (!resolved?.event) return undefined;
  const { headers, data, metadata, revision, stream, ...sent } = resolved.event;
  const id = idOf(sent.id);
  const position = positionOf(resolved.event);
  const read = (): ServerEvent => ({
    streamId: stream?.name ?? '',
    id,
    revision: bigintOf(revision),
    type: headers.type ?? '',
    data: headers['content-type'] === 'application/json' ? parsed(String(data)) : String(data),
    metadata: parsed(String(metadata)),
    position,
  });
  return { id, position, read };
}
