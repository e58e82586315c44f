/** The calls that write one batch of read models, each with its own timeout. */
import type { Collection } from 'mongodb';
import { piecesOf } from '../../runtime/scheduling.ts';
import { duplicatesIn } from './client.ts';
import { type Database, type Generation, quick } from './database.ts';
import type { Batch, StoredPayment } from './documents.ts';

export const PIECE_MAX = 500;

const INDEXES: { name: string; key: Record<string, 1 | -1> }[] = [
  { name: 'unresolved', key: { unresolvedSince: 1, _id: 1 } },
  { name: 'time', key: { createdAt: -1, _id: -1 } },
  { name: 'merchant', key: { merchantId: 1, createdAt: -1, _id: -1 } },
  { name: 'reference', key: { merchantReference: 1 } },
  { name: 'last4', key: { last4: 1, createdAt: -1, _id: -1 } },
];
const UNORDERED = { ordered: false } as const;

/** FerretDB finds one id by its index, and several by reading everything. */
export const oneOf = (ids: string[]) => (ids.length === 1 ? (ids[0] as string) : { $in: ids });

export const revisionsIn = (payments: Collection<StoredPayment>, ids: string[]) =>
  payments
    .find({ _id: oneOf(ids) }, { ...quick, projection: { revision: 1 } })
    .toArray() as Promise<Pick<StoredPayment, '_id' | 'revision'>[]>;

export const byId = (found: { _id: string; revision: number }[]): Map<string, number> =>
  new Map(found.map(({ _id, revision }) => [_id, revision]));

/** For a generation that has none yet. */
export const makeIndexes = async (
  { write }: Pick<Database, 'write'>,
  { payments }: Generation,
): Promise<void> => {
  // One by one: FerretDB 1.24 breaks the connection at a list that it has in part.
  for (const { key, name } of INDEXES) await write(() => payments.createIndex(key, { name }));
};

/** Writes and returns newer documents. Inserts unknown ones first: FerretDB scans for a filter beyond an id. */
export const writeReadModels = async (
  { write }: Pick<Database, 'write'>,
  { payments }: Generation,
  documents: StoredPayment[],
  isKnown: (id: string) => boolean,
  pieceSize: number,
): Promise<StoredPayment[]> => {
  const written: StoredPayment[] = [];
  const stored = documents.filter(({ _id }) => isKnown(_id));
  const fresh = documents.filter(({ _id }) => !isKnown(_id));
  // Each piece has its own timeout, so that a long batch is not taken for a slow server.
  for (const piece of piecesOf(fresh, pieceSize)) {
    const there = await duplicatesIn(write(() => payments.insertMany(piece, UNORDERED)));
    for (const [n, document] of piece.entries()) (there.has(n) ? stored : written).push(document);
  }
  for (const piece of piecesOf(stored, pieceSize)) {
    const replacements = piece.map(({ _id, ...replacement }) => ({
      replaceOne: {
        filter: { _id, revision: { $lt: replacement.revision } },
        replacement,
        // Also where it is gone; one that is as new makes this a duplicate key.
        upsert: true,
      },
    }));
    const newer = await duplicatesIn(write(() => payments.bulkWrite(replacements, UNORDERED)));
    written.push(...piece.filter((_, n) => !newer.has(n)));
  }
  return written;
};

/** After the read models: parks documents before the event, unparks those past it. `before`: those parked. */
export const writeParkings = async (
  { read, write }: Pick<Database, 'read' | 'write'>,
  { payments, parked }: Generation,
  { parkings }: Batch,
  before: Map<string, number>,
): Promise<void> => {
  const ids = [...new Set([...before.keys(), ...parkings.keys()])];
  if (ids.length === 0) return;
  const revisions = byId(await read(() => revisionsIn(payments, ids)));
  const revisionOf = (id: string): number => revisions.get(id) ?? -1;
  const over = [...before].filter(([id, revision]) => revision <= revisionOf(id));
  const current = [...parkings.values()].filter((p) => revisionOf(p.paymentId) < p.revision);
  const listed = [
    ...over.map(([_id, revision]) => ({ deleteOne: { filter: { _id, revision } } })),
    ...current.map(({ paymentId, revision, reason, time }) => ({
      updateOne: {
        filter: { _id: paymentId },
        update: { $set: { revision, reason }, $setOnInsert: { since: time } },
        upsert: true,
      },
    })),
  ];
  if (listed.length > 0) await write(() => parked.bulkWrite(listed));
  const marks = current.map(({ paymentId: _id, revision }) => ({
    updateOne: {
      filter: { _id, revision: { $lt: revision } },
      update: { $set: { parkedAt: revision } },
    },
  }));
  if (marks.length > 0) await write(() => payments.bulkWrite(marks, UNORDERED));
};

/** Whatever the revisions: its document and the list no longer say that the payment is parked. */
export const writeUnparking = async (
  { write }: Pick<Database, 'write'>,
  { payments, parked }: Generation,
  _id: string,
): Promise<void> => {
  await write(() => payments.updateOne({ _id }, { $set: { parkedAt: -1 } }));
  await write(() => parked.deleteOne({ _id }));
};
