/**
 * Token buckets by name (gaps §11): one per merchant, and one per address that only requests
 * without a valid token draw on.
 */
import { TokenBucket } from 'limiter';

/** `perSecond` 0 is off; `burst` is what may come at once. */
export type Rate = { perSecond: number; burst: number };

export type RateLimiter = {
  /** Draws one from a bucket: undefined, or the seconds until there is one again, at least 1. */
  take(name: string, rate: Rate): number | undefined;
};

/** A forgotten bucket starts full again, so a flood of names only ever helps itself. */
const BUCKETS_MAX = 10_000;

const fullBucket = ({ perSecond, burst }: Rate): TokenBucket => {
  const bucketSize = Math.max(1, burst);
  const bucket = new TokenBucket({ bucketSize, tokensPerInterval: perSecond, interval: 'second' });
  bucket.content = bucketSize;
  return bucket;
};

/** Limits by name. A name keeps the rate it came with first. */
export const createRateLimiter = (bucketsMax: number = BUCKETS_MAX): RateLimiter => {
  const buckets = new Map<string, TokenBucket>();
  const make = (name: string, rate: Rate): TokenBucket => {
    if (buckets.size >= bucketsMax) {
      const [oldest] = buckets.keys();
      if (oldest !== undefined) buckets.delete(oldest);
    }
    const bucket = fullBucket(rate);
    buckets.set(name, bucket);
    return bucket;
  };
  return {
    take: (name, rate) => {
      if (rate.perSecond <= 0) return undefined;
      const bucket = buckets.get(name) ?? make(name, rate);
      if (bucket.tryRemoveTokens(1)) return undefined;
      return Math.max(1, Math.ceil(bucket.getWaitTime(1) / 1000));
    },
  };
};
