/**
 * Keeps below Stripe's limit of requests a second, per account and endpoint (25 by default): a create
 * beyond it waits a little before its first request, instead of being rejected after it.
 */
import { setTimeout as delay } from 'node:timers/promises';

/** Longer, and the operation is not begun: its client would wait for nothing. */
const WAIT_MS_MAX = 2_000;
const NAMES_MAX = 1_000;

/** Waits for the turn of `name`; false where it is too far away. `perSecond` 0: no limit. */
export const createPace = (perSecond: number) => {
  const gapMs = perSecond === 0 ? 0 : 1_000 / perSecond;
  /** When the bucket of each name is full again: a second's worth may go at once. */
  const fullAt = new Map<string, number>();
  return async (name: string): Promise<boolean> => {
    const now = performance.now();
    const full = Math.max(fullAt.get(name) ?? 0, now);
    const waitMs = full + gapMs - now - 1_000;
    if (waitMs > WAIT_MS_MAX) return false;
    if (fullAt.size >= NAMES_MAX) {
      for (const [other, at] of fullAt) if (at < now) fullAt.delete(other);
    }
    fullAt.set(name, full + gapMs);
    if (waitMs > 0) await delay(waitMs);
    return true;
  };
};
