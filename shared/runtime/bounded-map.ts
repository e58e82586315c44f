/**
 * Maps with an end to their size: what is remembered only to spare work, and may be forgotten at
 * any time (ADR-0097). The library is imported here alone.
 */
import { LRUCache } from 'lru-cache';

/** A map of at most `max` entries; above it the one that was used the longest ago leaves. */
export type BoundedMap<V extends NonNullable<unknown>> = Pick<
  LRUCache<string, V>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'size'
>;

/** `get` and `set` count as use, `peek` does not. Room for all `max` entries is taken at once. */
export const createBoundedMap = <V extends NonNullable<unknown>>(max: number): BoundedMap<V> =>
  new LRUCache<string, V>({ max });
