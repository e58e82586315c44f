import { LRUCache } from 'lru-cache';

/** A cache: any entry may be evicted at any time (ADR-0112). */
export type BoundedMap<V extends NonNullable<unknown>> = Pick<
  LRUCache<string, V>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'size'
>;

type BytesBound<V> = {
  bytesMax: number;
  /** An estimate, an integer from 1. */
  bytesOf(value: V): number;
};

/** A value over `bytesMax` is not kept. */
export const createBoundedMap = <V extends NonNullable<unknown>>(
  max: number,
  bytes?: BytesBound<V>,
): BoundedMap<V> =>
  new LRUCache<string, V>(
    bytes === undefined
      ? // The library's `max` would allocate all entries at once.
        { maxSize: max, sizeCalculation: () => 1 }
      : { max, maxSize: bytes.bytesMax, sizeCalculation: bytes.bytesOf },
  );
