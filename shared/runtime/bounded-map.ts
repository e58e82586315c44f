import { LRUCache } from 'lru-cache';

/** A cache: any entry may be evicted at any time (ADR-0112). */
export type BoundedMap<V extends NonNullable<unknown>> = Pick<
  LRUCache<string, V>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'size' | 'calculatedSize'
>;

type BytesBound<V> = {
  bytesMax: number;
  /** An estimate, as an integer from 1. */
  bytesOf(value: V): number;
};

/**
 * At most `max` entries and about `bytesMax` bytes; a larger value is not kept. Bounded by size
 * alone: the library's `max` allocates all entries at once (16 ms for 100,000).
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
