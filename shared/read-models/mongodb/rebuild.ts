/** Rebuild: fills a generation beside the served one, and switches to it. */
import { setTimeout as delay } from 'node:timers/promises';
import { startChecksum } from '../checksum.ts';
import { createDamageReports } from '../damage-reports.ts';
import { CheckpointMoved, RebuildRunning } from '../errors.ts';
import type { NextGeneration, ReadModelsChecksum, ReadModelsRebuild } from '../port.ts';
import type { RowCheck } from '../row-check.ts';
import { PIECE_MAX } from './batch-writes.ts';
import { isDuplicate, unlessMissing } from './client.ts';
import { type Database, type Generation, SERVED, SERVED_MS_MAX, type Served } from './database.ts';
import { FORM, rowIn } from './documents.ts';
import type { Leases } from './lease.ts';
import { inspectIn, parkedIn, SEARCH_MS_MAX } from './reader.ts';
import { createWriter } from './writer.ts';

const REBUILD = 'rebuild';

/** What rebuilds need. */
export type RebuildOptions = {
  database: Database;
  served: Served;
  leases: Leases;
  rowCheck: RowCheck;
  /** After so many milliseconds a rebuild that no longer renews its lease is given up. */
  rebuildMs: number;
  /** Called when another generation is served from now on. */
  onServed(): void;
};

const checksumOf = async (
  { call }: Database,
  { payments }: Generation,
): Promise<ReadModelsChecksum> => {
  const sum = startChecksum();
  // In pages by id: the later batches of a cursor would have no timeout.
  for (let last = ''; ; ) {
    const page = await call(SEARCH_MS_MAX, () =>
      payments
        .find({ _id: { $gt: last } }, { maxTimeMS: SEARCH_MS_MAX })
        .sort({ _id: 1 })
        .limit(PIECE_MAX)
        .toArray(),
    );
    for (const stored of page) sum.add(rowIn(stored));
    last = page.at(-1)?._id ?? last;
    if (page.length < PIECE_MAX) return sum.result();
  }
};

const remove = async ({ control, write, generationOf }: Database, n: number): Promise<void> => {
  const { payments, parked, checkpointId } = generationOf(n);
  for (const collection of [payments, parked])
    await write(() => collection.drop().catch(unlessMissing));
  await write(() => control.deleteOne({ _id: checkpointId }));
};

/** The numbers of generations with collections, without the served one. */
const leftovers = async ({ db, read }: Database, servedN: number): Promise<number[]> => {
  const names = await read(() => db.listCollections({}, { nameOnly: true }).toArray());
  const found = names.map(({ name }) => name.match(`^${FORM}_(\\d+)_payments$`)?.[1]);
  return found.filter((n) => n !== undefined && Number(n) !== servedN).map(Number);
};

/** Keeps every other rebuild out until `end` is called. Throws RebuildRunning. */
const takeTurn = async ({ leases, rebuildMs }: RebuildOptions) => {
  const holder = crypto.randomUUID();
  if (!(await leases.take(REBUILD, holder, rebuildMs)))
    throw new RebuildRunning('the read models are being rebuilt already');
  let renewing: Promise<unknown> = Promise.resolve();
  const renewal = setInterval(() => {
    renewing = leases.take(REBUILD, holder, rebuildMs).catch(() => undefined);
  }, rebuildMs / 3).unref();
  return {
    end: async (): Promise<void> => {
      clearInterval(renewal);
      // A renewal under way would take the released lease again.
      await renewing;
      await leases.release(REBUILD, holder);
    },
  };
};

/** Stores which generation is served, for `serve` to compare; a duplicate key says it is stored. */
const nameServed = ({ control, write }: Database): Promise<unknown> =>
  write(() => control.insertOne({ _id: SERVED, generation: 1 })).catch((error: unknown) => {
    if (!isDuplicate(error)) throw error;
  });

const fillBeside = async (
  { database, served, rowCheck, onServed }: RebuildOptions,
  old: number,
  endTurn: () => Promise<void>,
): Promise<NextGeneration> => {
  const { control, write, generationOf } = database;
  const left = await leftovers(database, old);
  for (const n of left) await remove(database, n);
  // A number that no generation had: another process may still use one that was removed.
  const next = generationOf(Math.max(old, ...left) + 1);
  const { checkpoint, load, apply } = createWriter({
    database,
    generation: async () => next,
    check: () => undefined,
    rowCheck,
    reports: createDamageReports(),
    onWritten: () => undefined,
  });
  let open = true;
  let isServed = false;
  return {
    checkpoint,
    load,
    apply,
    parked: (limit, after) => parkedIn(database, next, limit, after),
    inspect: (paymentId) => inspectIn(database, next, paymentId, rowCheck),
    checksum: () => checksumOf(database, next),
    serve: async () => {
      const { matchedCount } = await write(() =>
        control.updateOne({ _id: SERVED, generation: old }, { $set: { generation: next.n } }),
      );
      if (matchedCount === 0)
        throw new CheckpointMoved('another generation of the read models is served now');
      isServed = true;
      served.set(next.n);
      onServed();
    },
    end: async () => {
      if (!open) return;
      open = false;
      // Before that, another process may still read the old generation.
      if (isServed) await delay(SERVED_MS_MAX);
      await remove(database, isServed ? old : next.n);
      await endTurn();
    },
  };
};

/** See ReadModelsRebuild. */
export const createRebuilds = (options: RebuildOptions): ReadModelsRebuild => {
  const { database, served } = options;
  return {
    checksum: async () => checksumOf(database, await served.now()),
    openGeneration: async () => {
      const { end } = await takeTurn(options);
      try {
        await nameServed(database);
        served.forget();
        return await fillBeside(options, (await served.now()).n, end);
      } catch (error) {
        await end().catch(() => undefined);
        throw error;
      }
    },
  };
};
