/**
 * Writing a generation of read models: documents first, checkpoint after. Both are compared and set (a
 * document only over a lower revision, the checkpoint only over the one it started from), so a batch
 * that is repeated, or written by two projectors at once, is harmless.
 */
import type { Position } from '../../event-store/port.ts';
import type { PaymentReadModel } from '../../payment/payment-response.ts';
import { bytesOfReadModel } from '../../payment/payment-response.ts';
import { type BoundedMap, createBoundedMap } from '../../runtime/bounded-map.ts';
import { readModelOf } from '../document-row.ts';
import { CheckpointMoved, ReadModelsUnavailable } from '../errors.ts';
import type { ReadModelsWriter } from '../port.ts';
import type { DamageReports, RowCheck } from '../row-check.ts';
import {
  byId,
  makeIndexes,
  oneOf,
  revisionsIn,
  writeParkings,
  writeReadModels,
  writeRepair,
} from './batch-writes.ts';
import { isDuplicate } from './client.ts';
import { type Database, type Generation, quick, SERVED } from './database.ts';
import {
  type Batch,
  batchOf,
  isWhole,
  type Repair,
  rowIn,
  type StoredControl,
  text,
} from './documents.ts';

/** Each round of a write that another writer got ahead of finds newer documents. */
const ROUNDS_MAX = 5;
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

type Writer = Pick<ReadModelsWriter, 'checkpoint' | 'checkpointHash' | 'load' | 'apply'> & {
  /** Read models as last written here, the latest last. */
  recent: BoundedMap<PaymentReadModel>;
};

const moved = (from: Position | null) =>
  new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);

export const createWriter = (deps: WriterDeps): Writer => {
  const { generation, rowCheck, reports } = deps;
  const { control, read, write } = deps.database;
  const recent = createBoundedMap<PaymentReadModel>(RECENT_READ_MODELS_MAX, {
    bytesMax: RECENT_BYTES_MAX,
    bytesOf: bytesOfReadModel,
  });
  /** As last seen here: any other means that the read models were wiped or moved. */
  let seen: Position | null | undefined;
  let indexed: number | undefined;

  const indexOnce = async (at: Generation): Promise<void> => {
    if (indexed === at.n) return;
    await makeIndexes(deps.database, at);
    indexed = at.n;
  };

  /** Throws CheckpointMoved for a batch that starts elsewhere, or for a generation not served any more. */
  const checkPlace = async (at: Generation, from: Position | null): Promise<void> => {
    const ids = [SERVED, at.checkpointId];
    const found = await read(() => control.find({ _id: { $in: ids } }, quick).toArray());
    deps.check(at, found);
    const position = found.find(({ _id }) => _id === at.checkpointId)?.position ?? null;
    if (position !== from) throw moved(from);
  };

  const knownOf = (id: string): [string, number][] => {
    const revision = recent.get(id)?.revision;
    return revision === undefined ? [] : [[id, revision]];
  };

  const readBefore = async (at: Generation, { ids, parkings }: Batch, round: number) => {
    const known = new Map(ids.flatMap((id) => knownOf(id)));
    // The first round trusts what was last written or read here: where that is outdated, the write ends
    // with a duplicate key, and the next round reads.
    const isTrusted = round === 1 && parkings.size === 0;
    const [stored, parked] = await read(() =>
      Promise.all([
        isTrusted ? [] : revisionsIn(at.payments, ids),
        at.parked.find({ _id: oneOf(ids) }, quick).toArray(),
      ]),
    );
    return { stored: isTrusted ? known : byId(stored), parked: byId(parked) };
  };

  /** Throws a duplicate key's error when more is stored than was known. */
  const writeBatch = async (at: Generation, batch: Batch, round: number): Promise<void> => {
    const before = await readBefore(at, batch, round);
    for (const [id, parkedAt] of before.parked) {
      const written = batch.readModels.get(id);
      if (written !== undefined) written.stored.parkedAt = parkedAt;
    }
    await writeReadModels(deps.database, at, batch.readModels, before.stored);
    await writeParkings(deps.database, at, batch, before);
    for (const [id, { readModel, stored: written }] of batch.readModels) {
      if ((before.stored.get(id) ?? -1) >= written.revision) continue;
      recent.set(id, readModel);
      deps.onWritten(id, written.revision);
    }
  };

  const writeUntilNewest = async (at: Generation, batch: Batch): Promise<void> => {
    for (let round = 1; ; round += 1) {
      try {
        return await writeBatch(at, batch, round);
      } catch (error) {
        if (!isDuplicate(error)) throw error;
        if (round === ROUNDS_MAX)
          throw new ReadModelsUnavailable(
            `another writer stored newer documents ${ROUNDS_MAX} times in a row`,
          );
      }
    }
  };

  const writeOneRepair = async (at: Generation, repair: Repair): Promise<void> => {
    const { paymentId, readModel } = repair;
    recent.delete(paymentId);
    await writeRepair(deps.database, at, repair, rowCheck).catch((error: unknown) => {
      // Another writer has stored it meanwhile.
      if (!isDuplicate(error)) throw error;
    });
    reports.written(paymentId);
    if (readModel !== undefined) deps.onWritten(paymentId, readModel.revision);
  };

  const moveCheckpoint = async (
    _id: string,
    from: Position | null,
    to: Position | null,
    hash: string | null,
  ) => {
    if (from === to) return;
    try {
      const { matchedCount, upsertedCount } = await write(() =>
        control.updateOne(
          { _id, position: from },
          { $set: { position: to, hash } },
          { upsert: from === null },
        ),
      );
      if (matchedCount + upsertedCount === 0) throw moved(from);
      seen = to;
    } catch (error) {
      throw isDuplicate(error) ? moved(from) : error;
    }
  };

  return {
    recent,
    checkpoint: async () => {
      const { checkpointId } = await generation();
      const stored = await read(() => control.findOne({ _id: checkpointId }, quick));
      const position = stored?.position ?? null;
      if (position !== seen) recent.clear();
      seen = position;
      if (position === null) indexed = undefined;
      return position;
    },
    checkpointHash: async (position) => {
      const { checkpointId } = await generation();
      const stored = await read(() => control.findOne({ _id: checkpointId }, quick));
      return stored?.position === position ? (stored.hash ?? null) : null;
    },
    load: async (paymentId) => {
      const readModel = recent.get(paymentId);
      if (readModel !== undefined) return readModel;
      const { payments } = await generation();
      const stored = await read(() => payments.findOne({ _id: text(paymentId) }, quick));
      if (stored === null) return undefined;
      if (!isWhole(stored, rowCheck)) {
        reports.report(paymentId);
        return undefined;
      }
      const loaded = readModelOf(rowIn(stored));
      recent.set(paymentId, loaded);
      return loaded;
    },
    apply: async (changes, from, to, hash) => {
      const batch = batchOf(changes, rowCheck);
      try {
        const at = await generation();
        await checkPlace(at, from);
        await indexOnce(at);
        for (const repair of batch.repairs) await writeOneRepair(at, repair);
        if (batch.ids.length > 0) await writeUntilNewest(at, batch);
        await moveCheckpoint(at.checkpointId, from, to, hash ?? null);
      } catch (error) {
        // A database that is wiped or put back now may have this very checkpoint and not what was written.
        recent.clear();
        throw error;
      }
    },
  };
};
