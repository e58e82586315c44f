/** Rebuild: fills a generation next to the served one, and switches to it. */
import { setTimeout as delay } from 'node:timers/promises';
import { oneRunAtATime } from '../../runtime/scheduling.ts';
import { createDamageReports } from '../damage.ts';
import { type RowCheck, startChecksum } from '../document-row.ts';
import { CheckpointMoved, RebuildRunning } from '../errors.ts';
import type { NextGeneration, ReadModelsRebuild } from '../port.ts';
import { PIECE_MAX } from './batch-writes.ts';
import { orUnchanged, unlessMissing } from './client.ts';
import { type Database, type Generation, SERVED, SERVED_MS_MAX, type Served } from './database.ts';
import { FORM, rowIn } from './documents.ts';
import { inspectIn, parkedIn, SEARCH_MS_MAX } from './reader.ts';
import { createWriter, type Leases } from './writer.ts';

const REBUILD = 'rebuild';

type GenerationOptions = {
  database: Database;
  served: Served;
  leases: Leases;
  rowCheck: RowCheck;
  /** A rebuild that no longer renews its lease is given up after so many milliseconds. */
  rebuildMs: number;
};

const checksumOf = async ({ call }: Database, { payments }: Generation) => {
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

/** The generations with collections, without the served one. */
const leftovers = async ({ db, read }: Database, servedN: number): Promise<number[]> => {
  const names = await read(() => db.listCollections({}, { nameOnly: true }).toArray());
  const found = names.map(({ name }) => name.match(`^${FORM}_(\\d+)_payments$`)?.[1]);
  return found.filter((n) => n !== undefined && Number(n) !== servedN).map(Number);
};

/** Keeps every other rebuild out until `end` is called. Throws RebuildRunning. */
const takeTurn = async ({ leases, rebuildMs }: GenerationOptions) => {
  const holder = crypto.randomUUID();
  if (!(await leases.take(REBUILD, holder, rebuildMs)))
    throw new RebuildRunning('the read models are being rebuilt already');
  const renew = async (): Promise<void> => {
    if (!(await leases.renew(REBUILD, holder, rebuildMs)))
      throw new RebuildRunning('another rebuild has begun, since this one did not renew its lease');
  };
  const renewOnce = oneRunAtATime(() => renew().catch(() => undefined));
  let renewing: Promise<void> | undefined;
  const renewal = setInterval(() => {
    renewing = renewOnce();
  }, rebuildMs / 3).unref();
  return {
    /** Throws RebuildRunning where another rebuild has begun, whether or not it has ended. */
    renew,
    end: async (): Promise<void> => {
      clearInterval(renewal);
      // A renewal that waits for its server would keep out the next rebuild after this one has ended.
      await renewing;
      await leases.release(REBUILD, holder);
    },
  };
};

/** Stores which generation is served, for `serve` to compare. */
const nameServed = ({ control, write }: Database): Promise<unknown> =>
  write(() => control.insertOne({ _id: SERVED, generation: 1 })).catch(orUnchanged);

const storedServed = async (served: Served): Promise<number> => {
  served.forget();
  return (await served.now()).n;
};

const fillBeside = async (
  { database, served, rowCheck }: GenerationOptions,
  old: number,
  turn: Awaited<ReturnType<typeof takeTurn>>,
): Promise<NextGeneration> => {
  const { control, write, generationOf } = database;
  const left = await leftovers(database, old);
  for (const n of left) await remove(database, n);
  // A number that no generation had: another process may still use one that was removed.
  const next = generationOf(Math.max(old, ...left) + 1);
  const { writer } = createWriter({
    database,
    generation: async () => next,
    check: () => undefined,
    rowCheck,
    reports: createDamageReports(),
    onWritten: () => undefined,
  });
  let open = true;
  return {
    ...writer,
    parked: (limit, after) => parkedIn(database, next, limit, after),
    inspect: (paymentId) => inspectIn(database, next, paymentId, rowCheck),
    checksum: () => checksumOf(database, next),
    serve: async () => {
      // Throws where another rebuild has removed this generation.
      await turn.renew();
      await write(() =>
        control.updateOne({ _id: SERVED, generation: old }, { $set: { generation: next.n } }),
      );
      // Repeated after a broken connection, the update finds nothing to change.
      if ((await storedServed(served)) !== next.n)
        throw new CheckpointMoved('another generation of the read models is served now');
    },
    end: async () => {
      if (!open) return;
      open = false;
      try {
        // Stored by a majority, as is then all that was written before: a switch of unknown outcome too.
        await turn.renew();
        const isServed = (await storedServed(served)) === next.n;
        // Before that, another process may still read the old generation.
        if (isServed) await delay(SERVED_MS_MAX);
        await remove(database, isServed ? old : next.n);
      } finally {
        await turn.end();
      }
    },
  };
};

export const createGenerations = (options: GenerationOptions): ReadModelsRebuild => {
  const { database, served } = options;
  return {
    checksum: async () => checksumOf(database, await served.now()),
    openGeneration: async () => {
      const turn = await takeTurn(options);
      try {
        await nameServed(database);
        return await fillBeside(options, await storedServed(served), turn);
      } catch (error) {
        await turn.end().catch(() => undefined);
        throw error;
      }
    },
  };
};
