/** The client's subscription to all streams of ours. */
import { START, streamNameFilter } from '@eventstore/db-client';
import { type Connection, swallow } from './connection.ts';
import { type LogPosition, METADATA_OF, STREAM_PREFIXES } from './records.ts';
import type { Source } from './subscription.ts';

// The server writes a deletion and a truncation to the stream of the metadata.
const PREFIXES = STREAM_PREFIXES.flatMap((prefix) => [prefix, `${METADATA_OF}${prefix}`]);

/** Subscribes after a position (undefined: from the start); `alive` is called at checkpoints. */
export function sourceOf(
  { current }: Connection,
  from: LogPosition | undefined,
  alive: () => void,
): Source {
  const filter = streamNameFilter({
    prefixes: PREFIXES,
    maxSearchWindow: 1000,
    checkpointInterval: 32,
    checkpointReached: async () => alive(),
  });
  const subscription = current().subscribeToAll({ fromPosition: from ?? START, filter });
  return Object.assign(subscription, {
    cancel: () => void subscription.unsubscribe().catch(swallow),
  }) as unknown as Source;
}
