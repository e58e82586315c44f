/**
 * Token buckets by name (gaps §11): one per merchant, and one per address that only requests
 * without a valid token draw on.
 */
import { createBoundedMap } from '../../runtime/bounded-map.ts';

/** `perSecond` 0 is off; `burst` is what may come at once. */
export type Rate = { perSecond: number; burst: number };

export type RateLimiter = {
  /** Draws one from a bucket: undefined, or the seconds until there is one again, at least 1. */
  take(name: string, rate: Rate): number | undefined;
  /** Whether `take` would draw one. */
  hasOne(name: string, rate: Rate): boolean;
};

/** A forgotten bucket starts full again, so a flood of names only ever helps itself. */
const BUCKETS_MAX = 10_000;

type Bucket = { perSecond: number; size: number; tokens: number; filledAtMs: number };

const fullBucket = ({ perSecond, burst }: Rate, nowMs: number): Bucket => {
  const size = Math.max(1, burst);
  return { perSecond, size, tokens: size, filledAtMs: nowMs };
};

const refill = (bucket: Bucket, nowMs: number): void => {
  const passedSeconds = Math.max(0, nowMs - bucket.filledAtMs) / 1000;
  bucket.tokens = Math.min(bucket.size, bucket.tokens + passedSeconds * bucket.perSecond);
  bucket.filledAtMs = nowMs;
};

/** Limits by name. A name keeps the rate it came with first. `nowMs` is a clock that never goes back. */
export const createRateLimiter = (
  bucketsMax: number = BUCKETS_MAX,
  nowMs: () => number = () => performance.now(),
): RateLimiter => {
  const buckets = createBoundedMap<Bucket>(bucketsMax);
  const bucketOf = (name: string, rate: Rate): Bucket => {
    const now = nowMs();
    const bucket = buckets.get(name) ?? fullBucket(rate, now);
    buckets.set(name, bucket);
    refill(bucket, now);
    return bucket;
  };
  return {
    hasOne: (name, rate) => rate.perSecond <= 0 || bucketOf(name, rate).tokens >= 1,
    take: (name, rate) => {
      if (rate.perSecond <= 0) return undefined;
      const bucket = bucketOf(name, rate);
      if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / bucket.perSecond));
      bucket.tokens -= 1;
      return undefined;
    },
  };
};
