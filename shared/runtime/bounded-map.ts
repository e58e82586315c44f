/**
 * Maps of bounded size, for caches: any entry may be evicted at any time (ADR-0112). No
 * other file imports the library.
 */
import { LRUCache } from 'lru-cache';

/** A map that evicts the least recently used entries above its bounds. */
export type BoundedMap<V extends NonNullable<unknown>> = Pick<
  LRUCache<string, V>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'size' | 'calculatedSize'
>;

/** How much memory the values of a map may take: where one value can be a thousand times another. */
export type BytesBound<V> = {
  bytesMax: number;
  /** About how many bytes a value takes: an integer from 1, made without a look at all of it. */
  bytesOf(value: V): number;
};

/**
 * A map of at most `max` entries and, where given, of about `bytesMax` bytes; a value larger than that
 * is not kept. `get` and `set` count as use, `peek` does not. It grows as it is filled: given `max`, the
 * library takes the memory of all entries at once, which is 16 ms for 100,000. So with bytes a value
 * counts as one of `max` equal parts of them at least.
 */
export const createBoundedMap = <V extends NonNullable<unknown>>(
  max: number,
  bytes?: BytesBound<V>,
): BoundedMap<V> =>
  new LRUCache<string, V>({
    maxSize: max,
    sizeCalculation: () => 1,
    ...(bytes && boundedByBytes(max, bytes)),
  });

const boundedByBytes = <V>(max: number, { bytesMax, bytesOf }: BytesBound<V>) => {
  const bytesMin = Math.ceil(bytesMax / max);
  return { maxSize: bytesMax, sizeCalculation: (value: V) => Math.max(bytesOf(value), bytesMin) };
};
