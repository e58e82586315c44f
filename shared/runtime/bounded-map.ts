import { LRUCache } from 'lru-cache';

/** A cache: any entry may be evicted at any time (ADR-0112). */
export type BoundedMap<V extends NonNullable<unknown>> = Pick<
  LRUCache<string, V>,
  'get' | 'peek' | 'set' | 'delete' | 'clear' | 'size' | 'calculatedSize'
>;

type BytesBound<V> = {
  bytesMax: number;
  /** An estimate, an integer from 1. */
  bytesOf(value: V): number;
};

/** A value over `bytesMax` is not kept. The library's `max` would allocate all entries at once. */
export const createBoundedMap = <V extends NonNullable<unknown>>(
  max: number,
  { bytesMax, bytesOf }: BytesBound<V> = { bytesMax: max, bytesOf: () => 1 },
): BoundedMap<V> => {
  const bytesMin = Math.ceil(bytesMax / max);
  const sizeCalculation = (value: V) => Math.max(bytesOf(value), bytesMin);
  return new LRUCache<string, V>({ maxSize: bytesMax, sizeCalculation });
};
