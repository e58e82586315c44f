/** Token buckets by name (gaps §11): per merchant, and per address for requests without a valid token. */
import { isIP } from 'node:net';
import { createBoundedMap } from '../../runtime/bounded-map.ts';

/** `perSecond` 0 is off. */
export type Rate = { perSecond: number; burst: number };

type RateLimiter = {
  /** Draws one from a bucket: undefined, or the seconds until there is one again, at least 1. */
  take(name: string, rate: Rate): number | undefined;
  hasOne(name: string, rate: Rate): boolean;
};

const IPV6_PARTS = 8;
const NETWORK_PARTS = 4;
const partsOf = (text = ''): string[] => text.split(':').filter((part) => part !== '');

/** The IPv4 address, or the /64 of the IPv6 address: a sender that has one address of it has all. */
export const senderOf = ({
  remoteAddress = '',
}: {
  remoteAddress?: string | undefined;
}): string => {
  // One with a dot is an IPv4 address in IPv6.
  if (isIP(remoteAddress) !== 6 || remoteAddress.includes('.')) return remoteAddress;
  const [first, second] = remoteAddress.replace(/%.*/, '').split('::');
  const [head, tail] = [partsOf(first), partsOf(second)];
  const zeros = Array<string>(IPV6_PARTS - head.length - tail.length).fill('0');
  return [...head, ...zeros, ...tail].slice(0, NETWORK_PARTS).join(':');
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
