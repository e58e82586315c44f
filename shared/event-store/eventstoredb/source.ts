/** The client's subscription to all streams of ours. */
import { START, streamNameFilter } from '@eventstore/db-client';
import { type Connection, swallow } from './connection.ts';
import { type LogPosition, STREAM_PREFIXES } from './records.ts';
import type { Source } from './subscription.ts';

/** Subscribes after a position (undefined: from the start); `alive` is called at checkpoints. */
export function sourceOf(
  { current }: Connection,
  from: LogPosition | undefined,
  alive: () => void,
): Source {
  const filter = streamNameFilter({
    prefixes: [...STREAM_PREFIXES],
    maxSearchWindow: 1000,
    checkpointInterval: 32,
    checkpointReached: async () => alive(),
  });
  const subscription = current().subscribeToAll({ fromPosition: from ?? START, filter });
  return Object.assign(subscription, {
    cancel: () => void subscription.unsubscribe().catch(swallow),
  }) as unknown as Source;
}
