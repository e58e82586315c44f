/**
 * Maps of bounded size, for caches: any entry may be evicted at any time (ADR-0097). No other file
 * imports the library.
 */
import { LRUCache } from 'lru-cache';

/** A map of at most `max` entries; one entry more evicts the least recently used one. */
export type BoundedMap<V extends NonNullable<unknown>> = Pick<
  LRUCache<string, V>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'size'
>;

/** `get` and `set` count as use, `peek` does not. Memory for `max` entries is allocated at once. */
export const createBoundedMap = <V extends NonNullable<unknown>>(max: number): BoundedMap<V> =>
  new LRUCache<string, V>({ max });
