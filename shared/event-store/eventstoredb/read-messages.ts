/** The messages of a subscription, on the client's generated stubs: 64-bit numbers are text. */
import sharedPb from '@eventstore/db-client/generated/shared_pb.js';
import streamsPb from '@eventstore/db-client/generated/streams_pb.js';
import type { EventType } from '../../payment/events.ts';
import { textOfId } from './batch-messages.ts';
import {
  CHANGED_TYPES,
  type LogPosition,
  METADATA_OF,
  type ServerEvent,
  STREAM_PREFIXES,
} from './records.ts';
import { bigintAt, partOf, textAt } from './wire.ts';

const { Options } = streamsPb.ReadReq;
const { Empty } = sharedPb;

type Recorded = InstanceType<typeof streamsPb.ReadResp.ReadEvent.RecordedEvent>;

/** The server says that it is alive each time that it has passed over some times so many events. */
export const PASSED_OVER_MAX = 1000;
const CHECKPOINT_INTERVAL = 32;

// The server writes a deletion and a truncation to the stream of the metadata.
const PREFIXES = STREAM_PREFIXES.flatMap((prefix) => [prefix, `${METADATA_OF}${prefix}`]);

function filterOf(types: readonly EventType[] | undefined) {
  const expression = new Options.FilterOptions.Expression();
  const filter = new Options.FilterOptions();
  // seeded bug: types-filtered-at-server
  if (types === undefined) {
    filter.setStreamIdentifier(expression.setPrefixList(PREFIXES));
  } else {
    filter.setEventType(expression.setPrefixList([...types, ...CHANGED_TYPES]));
  }
  filter.setMax(PASSED_OVER_MAX);
  filter.setCheckpointintervalmultiplier(CHECKPOINT_INTERVAL);
  return filter;
}

/**
 * A subscription to all streams of ours after a position (undefined: from the start), or to types of
 * events, which the server takes as the beginnings of names: it filters by one of the two.
 */
export function subscriptionOf(
  from: LogPosition | undefined,
  types: readonly EventType[] | undefined,
) {
  const all = new Options.AllOptions();
  if (from === undefined) {
    all.setStart(new Empty());
  } else {
    const position = new Options.Position();
    position.setCommitPosition(String(from.commit));
    position.setPreparePosition(String(from.prepare));
    all.setPosition(position);
  }
  const ids = new Options.UUIDOption();
  ids.setString(new Empty());
  const options = new Options();
  options.setAll(all);
  options.setSubscription(new Options.SubscriptionOptions());
  options.setFilter(filterOf(types));
  options.setUuidOption(ids);
  const request = new streamsPb.ReadReq();
  request.setOptions(options);
  return request;
}

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();

/** What is no JSON stays text: the reader finds that it is no event of ours. */
function parsed(bytes: Uint8Array): unknown {
  const text = textOf(bytes);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The id and the place of an event that the server sends, read from its bytes alone. */
export function headOf(bytes: Buffer): { id: string; position: LogPosition } | undefined {
  const resolved = partOf(bytes, 1);
  const event = resolved && partOf(bytes, 1, resolved);
  const ids = event && partOf(bytes, 1, event);
  const id = ids && partOf(bytes, 2, ids);
  if (event === undefined || id === undefined) return undefined;
  const [prepare, commit] = [partOf(bytes, 4, event), partOf(bytes, 5, event)];
  return {
    id: textAt(bytes, id),
    position: { commit: bigintAt(bytes, commit), prepare: bigintAt(bytes, prepare) },
  };
}

/** The event with its data and metadata parsed. */
export function serverEventOf(event: Recorded): ServerEvent {
  const fields = event.getMetadataMap();
  const data = event.getData_asU8();
  return {
    streamId: textOf(event.getStreamIdentifier()?.getStreamName_asU8() ?? new Uint8Array()),
    id: textOfId(event.getId()),
    revision: BigInt(event.getStreamRevision()),
    type: fields.get('type') ?? '',
    data: fields.get('content-type') === 'application/json' ? parsed(data) : data,
    metadata: parsed(event.getCustomMetadata_asU8()),
    position: {
      commit: BigInt(event.getCommitPosition()),
      prepare: BigInt(event.getPreparePosition()),
    },
  };
}
