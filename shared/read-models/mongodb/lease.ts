/** Leases, each with one holder at a time: for following the log, and for a rebuild. */
import { isDuplicate } from './client.ts';
import type { Database } from './database.ts';

/** The leases of a database, by name. */
export type Leases = {
  /** Takes or renews one; false while another holder has it. Throws ReadModelsUnavailable. */
  take(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /** Releases one, if this holder has it. */
  release(name: string, holder: string): Promise<void>;
};

/** Each lease is a control document. */
export const createLeases = ({ db, control, read, write }: Database): Leases => ({
  take: async (_id, holder, ttlMs) => {
    // The server's clock: a process whose own clock is ahead would take a lease too early.
    const { localTime } = await read(() => db.command({ hello: 1 }));
    const now = localTime instanceof Date ? localTime.getTime() : Date.now();
    const free = [{ holder }, { until: { $lte: new Date(now) } }];
    const taken = { $set: { holder, until: new Date(now + ttlMs) } };
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
  release: async (_id, holder) => {
    await write(() => control.deleteOne({ _id, holder }));
  },
});
