/**
 * Stripe's limits of an account's requests a second, for each endpoint and in all, as buckets that fill again
 * evenly: a second's worth may come at once.
 */
export type Limits = { endpoint: number; all: number };

export const createLimits = ({ endpoint, all }: Limits) => {
  const buckets = new Map<string, { left: number; atMs: number }>();

  const take = (name: string, perSecond: number): boolean => {
    const now = performance.now();
    const { left, atMs } = buckets.get(name) ?? { left: perSecond, atMs: now };
    const full = Math.min(perSecond, left + ((now - atMs) * perSecond) / 1_000);
    const isTaken = full >= 1;
    buckets.set(name, { left: isTaken ? full - 1 : full, atMs: now });
    return isTaken;
  };

  /** False: too many. An object's own id is no part of an endpoint's name. */
  return (method: string, path: string): boolean => {
    const name = path.replace(/\/(pi|pm)_[A-Za-z0-9_]+/, '/:id');
    return take('', all) && take(`${method} ${name}`, endpoint);
  };
};
