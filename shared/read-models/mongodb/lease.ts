/** What one holder at a time may have for a while: the lease of the projector, and a rebuild. */
import { isDuplicate } from './client.ts';
import type { Database } from './database.ts';

export type Leases = {
  /** Takes or renews one; false while another holder has it. Throws ReadModelsUnavailable. */
  take(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /** Lets go of one, if this holder has it. */
  letGo(name: string, holder: string): Promise<void>;
};

export const createLeases = ({ db, control, read, write }: Database): Leases => ({
  take: async (_id, holder, ttlMs) => {
    // The server's clock: a process whose own is ahead would take it too early.
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
  letGo: async (_id, holder) => {
    await write(() => control.deleteOne({ _id, holder }));
  },
});
