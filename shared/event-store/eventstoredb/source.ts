/** The client's subscription to all streams of ours, or to some types of events. */
import { eventTypeFilter, START, streamNameFilter } from '@eventstore/db-client';
import type { EventType } from '../../payment/events.ts';
import { type Connection, swallow } from './connection.ts';
import { CHANGED_TYPES, type LogPosition, METADATA_OF, STREAM_PREFIXES } from './records.ts';
import type { Source } from './subscription.ts';

// The server writes a deletion and a truncation to the stream of the metadata.
const PREFIXES = STREAM_PREFIXES.flatMap((prefix) => [prefix, `${METADATA_OF}${prefix}`]);

type SourceOptions = {
  /** The position to begin after; undefined: the start. */
  from: LogPosition | undefined;
  /** The types to send; undefined: all. The server takes them as the beginnings of names. */
  types: readonly EventType[] | undefined;
  /** Called at checkpoints. */
  alive: () => void;
};

/** Subscribes. A server filters by streams or by types, not by both. */
export function sourceOf({ current }: Connection, { from, types, alive }: SourceOptions): Source {
  const options = {
    maxSearchWindow: 1000,
    checkpointInterval: 32,
    checkpointReached: async () => alive(),
  };
  const filter =
    // seeded bug: types-filtered-at-server
    types === undefined
      ? streamNameFilter({ ...options, prefixes: PREFIXES })
      : eventTypeFilter({ ...options, prefixes: [...types, ...CHANGED_TYPES] });
  const subscription = current().subscribeToAll({ fromPosition: from ?? START, filter });
  return Object.assign(subscription, {
    cancel: () => void subscription.unsubscribe().catch(swallow),
  }) as unknown as Source;
}
