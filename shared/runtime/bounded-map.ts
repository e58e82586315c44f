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

/** A value over `bytesMax` is not kept. Some 25 bytes for each of `max` entries are taken at once. */
export const createBoundedMap = <V extends NonNullable<unknown>>(
  max: number,
  bytes?: BytesBound<V>,
): BoundedMap<V> =>
  new LRUCache<string, V>({
    max,
    ...(bytes && { maxSize: bytes.bytesMax, sizeCalculation: bytes.bytesOf }),
  });
