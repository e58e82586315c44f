/**
 * Writes documents first, then the checkpoint: a document only over a lower revision, the checkpoint only over
 * the one it started from. So a batch that is repeated, or written by two projectors at once, is harmless.
 */
import type { Position } from '../../event-store/port.ts';
import { bytesOfReadModel, type PaymentReadModel } from '../../payment/state.ts';
import { type BoundedMap, createBoundedMap } from '../../runtime/bounded-map.ts';
import { type DamageReports, NO_CHECK } from '../damage.ts';
import { type RowCheck, readModelOf } from '../document-row.ts';
import { CheckpointMoved, ReadModelsUnavailable } from '../errors.ts';
import type { ReadModelsWriter } from '../port.ts';
import {
  byId,
  makeIndexes,
  oneOf,
  PIECE_MAX,
  writeParkings,
  writeReadModels,
  writeUnparking,
} from './batch-writes.ts';
import { orUnchanged } from './client.ts';
import { type Database, type Generation, quick, SERVED } from './database.ts';
import {
  type Batch,
  batchOf,
  isWhole,
  rowIn,
  type StoredControl,
  storedText,
} from './documents.ts';

/** Written read models that are kept for the next event (some 3 kB each). */
const RECENT_READ_MODELS_MAX = 4096;
const RECENT_BYTES_MAX = 32 * 1024 * 1024;

type WriterDeps = {
  database: Pick<Database, 'control' | 'read' | 'write'>;
  /** The generation to write to, as it was when a batch begins. */
  generation(): Promise<Generation>;
  /** Throws CheckpointMoved where the batch is for a generation that is served no more. */
  check(at: Generation, control: StoredControl[]): void;
  rowCheck: RowCheck;
  reports: DamageReports;
  onWritten(paymentId: string, revision: number): void;
};

type Writing = WriterDeps & {
  /** Read models as last written here, the latest last. */
  recent: BoundedMap<PaymentReadModel>;
  /** As last seen here: any other means that the read models were wiped or moved. */
  seen: Position | null | undefined;
  /** The generation that has its indexes. */
  indexed: number | undefined;
  pieceSize: number;
};

const moved = (from: Position | null) =>
  new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);

/** Throws CheckpointMoved for a batch that starts elsewhere, or for a generation not served any more. */
const checkPlace = async (
  { database: { read, control }, check }: Writing,
  at: Generation,
  from: Position | null,
): Promise<void> => {
  const ids = [SERVED, at.checkpointId];
  const found = await read(() => control.find({ _id: { $in: ids } }, quick).toArray());
  check(at, found);
  const position = found.find(({ _id }) => _id === at.checkpointId)?.position ?? null;
  if (position !== from) throw moved(from);
};

const storedCheckpoint = async ({ database: { read, control }, generation }: Writing) => {
  const { checkpointId } = await generation();
  return read(() => control.findOne({ _id: checkpointId }, quick));
};

const writeBatch = async (own: Writing, at: Generation, batch: Batch): Promise<void> => {
  const { database, recent, onWritten } = own;
  const { ids, readModels } = batch;
  const found = await database.read(() => at.parked.find({ _id: oneOf(ids) }, quick).toArray());
  const parked = byId(found);
  const documents = [...readModels.values()].map(({ stored }) => stored);
  for (const document of documents) {
    const parkedAt = parked.get(document._id);
    if (parkedAt !== undefined) document.parkedAt = parkedAt;
  }
  const isKnown = (id: string): boolean => recent.get(id) !== undefined;
  const written = await writeReadModels(database, at, documents, isKnown, own.pieceSize);
  await writeParkings(database, at, batch, parked);
  for (const { _id, revision } of written) {
    const readModel = readModels.get(_id)?.readModel;
    if (readModel !== undefined) recent.set(_id, readModel);
    onWritten(_id, revision);
  }
};

const moveCheckpoint = async (
  own: Writing,
  _id: string,
  ...[from, to, hash = null]: [Position | null, Position | null, (string | null)?]
): Promise<void> => {
  if (from === to) return;
  const { control, write } = own.database;
  const change = { $set: { position: to, hash } };
  const { matchedCount, upsertedCount } = await write(() =>
    control.updateOne({ _id, position: from }, change, { upsert: from === null }),
  ).catch(orUnchanged);
  if (matchedCount + upsertedCount === 0) throw moved(from);
  own.seen = to;
};

export const createWriter = (deps: WriterDeps) => {
  const recent = createBoundedMap<PaymentReadModel>(RECENT_READ_MODELS_MAX, {
    bytesMax: RECENT_BYTES_MAX,
    bytesOf: bytesOfReadModel,
  });
  const none = { seen: undefined, indexed: undefined };
  const own: Writing = { ...deps, ...none, recent, pieceSize: PIECE_MAX };
  const { database, generation, rowCheck, reports } = deps;
  const writer: Pick<ReadModelsWriter, 'checkpoint' | 'checkpointHash' | 'load' | 'apply'> = {
    checkpoint: async () => {
      const position = (await storedCheckpoint(own))?.position ?? null;
      if (position !== own.seen) recent.clear();
      own.seen = position;
      if (position === null) own.indexed = undefined;
      return position;
    },
    checkpointHash: async (position) => {
      const stored = await storedCheckpoint(own);
      return stored?.position === position ? (stored.hash ?? null) : null;
    },
    load: async (paymentId) => {
      const readModel = recent.get(paymentId);
      if (readModel !== undefined) return readModel;
      const { payments } = await generation();
      const stored = await database.read(() =>
        payments.findOne({ _id: storedText(paymentId) }, quick),
      );
      if (stored === null) return undefined;
      if (!isWhole(stored, rowCheck)) {
        reports.note(paymentId, NO_CHECK);
        return undefined;
      }
      const loaded = readModelOf(rowIn(stored));
      recent.set(paymentId, loaded);
      return loaded;
    },
    apply: async (changes, from, to, hash) => {
      const batch = batchOf(changes, rowCheck);
      const largest = Math.min(own.pieceSize, batch.readModels.size);
      try {
        const at = await generation();
        await checkPlace(own, at, from);
        if (own.indexed !== at.n) await makeIndexes(database, at);
        own.indexed = at.n;
        for (const paymentId of batch.unparked) await writeUnparking(database, at, paymentId);
        if (batch.ids.length > 0) await writeBatch(own, at, batch);
        await moveCheckpoint(own, at.checkpointId, from, to, hash);
        if (largest === own.pieceSize) own.pieceSize = Math.min(PIECE_MAX, 2 * largest);
      } catch (error) {
        // A server that takes less in the time of a call gets on by smaller ones, up to a whole batch.
        if (error instanceof ReadModelsUnavailable && largest > 0)
          own.pieceSize = Math.ceil(largest / 2);
        // A database that is wiped or put back now may have this very checkpoint and not what was written.
        recent.clear();
        throw error;
      }
    },
  };
  return { recent, writer };
};

/** Leases to follow the log and to rebuild, one holder at a time. Every call throws ReadModelsUnavailable. */
export const createLeases = ({ db, control, read, write }: Database) => {
  /** The server's clock: a process whose own clock is ahead would take a lease too early. */
  const endOf = async (ttlMs: number) => {
    const { localTime } = await read(() => db.command({ hello: 1 }));
    const now = localTime instanceof Date ? localTime.getTime() : Date.now();
    return { now: new Date(now), until: new Date(now + ttlMs) };
  };
  return {
    take: async (_id: string, holder: string, ttlMs: number): Promise<'free' | 'held' | false> => {
      const { now, until } = await endOf(ttlMs);
      const free = [{ holder }, { until: { $lte: now } }];
      const { matchedCount, upsertedCount } = await write(() =>
        control.updateOne({ _id, $or: free }, { $set: { holder, until } }, { upsert: true }),
      ).catch(orUnchanged);
      if (upsertedCount === 1) return 'free';
      return matchedCount === 1 && 'held';
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
