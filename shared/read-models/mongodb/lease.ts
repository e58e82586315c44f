/** Leases, each with one holder at a time: for following the log, and for a rebuild. */
import { isDuplicate } from './client.ts';
import type { Database } from './database.ts';

/** Each lease is a control document. Every call throws ReadModelsUnavailable. */
export const createLeases = ({ db, control, read, write }: Database) => {
  /** The server's clock: a process whose own clock is ahead would take a lease too early. */
  const endOf = async (ttlMs: number) => {
    const { localTime } = await read(() => db.command({ hello: 1 }));
    const now = localTime instanceof Date ? localTime.getTime() : Date.now();
    return { now: new Date(now), until: new Date(now + ttlMs) };
  };
  return {
    /** As `lease` of the port. */
    take: async (_id: string, holder: string, ttlMs: number): Promise<'free' | 'held' | false> => {
      const { now, until } = await endOf(ttlMs);
      const free = [{ holder }, { until: { $lte: now } }];
      try {
        const { matchedCount, upsertedCount } = await write(() =>
          control.updateOne({ _id, $or: free }, { $set: { holder, until } }, { upsert: true }),
        );
        if (upsertedCount === 1) return 'free';
        return matchedCount === 1 && 'held';
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },
    /** Renews one that this holder took; false where another one has taken it since, or also released it. */
    renew: async (_id: string, holder: string, ttlMs: number): Promise<boolean> => {
      const { until } = await endOf(ttlMs);
      const { matchedCount } = await write(() =>
        control.updateOne({ _id, holder }, { $set: { until } }),
      );
      return matchedCount === 1;
    },
    release: async (_id: string, holder: string): Promise<void> => {
      await write(() => control.deleteOne({ _id, holder }));
    },
  };
};
export type Leases = ReturnType<typeof createLeases>;
