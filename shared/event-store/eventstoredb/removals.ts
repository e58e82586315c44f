/**
 * Streams of ours that an administrator of the server has deleted or cut, or may have, while this
 * process followed the log. The server itself takes an append to a deleted stream (docs/eventstoredb.md), so
 * these are looked at before each append.
 */
import { createBoundedMap } from '../../runtime/bounded-map.ts';

const KNOWN_MAX = 10_000;

/** Learns from the subscriptions of one store. */
export function createRemovals() {
  const changed = createBoundedMap<true>(KNOWN_MAX);
  return {
    note: (stream: string): void => void changed.set(stream, true),
    mayConcern: (stream: string): boolean => changed.get(stream) === true,
  };
}

/** See `createRemovals`. */
export type Removals = ReturnType<typeof createRemovals>;
