/** Leases, each with one holder at a time: for following the log, and for a rebuild. */
import { isDuplicate } from './client.ts';
import type { Database } from './database.ts';

/** The leases of a database, by name. */
export type Leases = {
  /** Takes or renews one; false while another holder has it. Throws ReadModelsUnavailable. */
  take(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /**
   * Renews one that this holder took; false where another one has taken it since, also where that one has
   * released it. Throws ReadModelsUnavailable.
   */
  renew(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /** Releases one, if this holder has it. */
  release(name: string, holder: string): Promise<void>;
};

/** Each lease is a control document. */
export const createLeases = ({ db, control, read, write }: Database): Leases => {
  /** The server's clock: a process whose own clock is ahead would take a lease too early. */
  const now = async (): Promise<number> => {
    const { localTime } = await read(() => db.command({ hello: 1 }));
    return localTime instanceof Date ? localTime.getTime() : Date.now();
  };
  return {
    take: async (_id, holder, ttlMs) => {
      const at = await now();
      const free = [{ holder }, { until: { $lte: new Date(at) } }];
      const taken = { $set: { holder, until: new Date(at + ttlMs) } };
      try {
        const { matchedCount, upsertedCount } = await write(() =>
          control.updateOne({ _id, $or: free }, taken, { upsert: true }),
        );
        return matchedCount + upsertedCount === 1;
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },
    renew: async (_id, holder, ttlMs) => {
      const until = new Date((await now()) + ttlMs);
      const { matchedCount } = await write(() =>
        control.updateOne({ _id, holder }, { $set: { until } }),
      );
      return matchedCount === 1;
    },
    release: async (_id, holder) => {
      await write(() => control.deleteOne({ _id, holder }));
    },
  };
};
