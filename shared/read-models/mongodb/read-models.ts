/**
 * The read models in MongoDB, or in a server that speaks its protocol: the only importer of the
 * client. It needs no more than that one document is changed as a whole: no transaction, no
 * aggregate, no change stream, plain indexes.
 *
 * A batch is written documents first, checkpoint after. Both are compared and set (a document only
 * over a lower revision, the checkpoint only over the one it started from), so that a batch that is
 * repeated, or written by two projectors at once, is harmless.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Collection,
  MongoBulkWriteError,
  MongoClient,
  type MongoClientOptions,
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
} from 'mongodb';
import type { Position } from '../../event-store/port.ts';
import type { PaymentReadModel } from '../../payment/response.ts';
import { type BoundedMap, createBoundedMap } from '../../runtime/bounded-map.ts';
import { startChecksum } from '../checksum.ts';
import { CheckpointMoved, ReadModelsUnavailable, RebuildRunning } from '../errors.ts';
import { documentsOf, newestOf } from '../found.ts';
import type { NextGeneration, ReadModels, ReadModelsChecksum, ReadModelsWriter } from '../port.ts';
import { createDoor, type Failure } from './call-mongodb.ts';
import {
  type Batch,
  batchOf,
  FORM,
  filtersOf,
  foundOf,
  readModelOf,
  type StoredControl,
  type StoredParking,
  type StoredPayment,
  text,
} from './documents.ts';
import { createRevisionPoller } from './revision-poller.ts';

export type MongoReadModelsOptions = {
  /** `mongodb://…` with the database's name in its path. */
  url: string;
  logger?: { warn(fields: object, message: string): void };
  /** How long a rebuild that fell silent keeps the next one out. */
  rebuildMs?: number;
};

export type MongoReadModels = ReadModels & {
  /** Throws ReadModelsUnavailable when the server does not answer. */
  ping(): Promise<void>;
};

/** No call outlives these, whatever the client's own time-outs do. */
const READ_MS_MAX = 2500;
const WRITE_MS_MAX = 5000;
const SEARCH_MS_MAX = 5000;
const REBUILD_MS = 15_000;
/** How long another process's switch of generations may go unnoticed. */
const SERVED_MS_MAX = 1000;
/** Rounds of a write that another writer got ahead of; each one finds newer documents. */
const ROUNDS_MAX = 5;
/** How many written read models are kept for the next event (some 3 kB each). */
const RECENT_READ_MODELS_MAX = 4096;
/** How many documents one write carries. */
const PIECE_MAX = 500;
const DUPLICATE_KEY = 11000;
const NAMESPACE_NOT_FOUND = 26;

const CLIENT_OPTIONS: MongoClientOptions = {
  appName: 'payments',
  // The client's defaults acknowledge writes that a failover loses, and wait 30 s for a dead server.
  writeConcern: { w: 'majority', j: true, wtimeoutMS: 2000 },
  readConcern: { level: 'majority' },
  readPreference: 'primary',
  serverSelectionTimeoutMS: 2000,
  connectTimeoutMS: 2000,
  socketTimeoutMS: 5000,
  waitQueueTimeoutMS: 1000,
  maxAdaptiveRetries: 0,
  maxPoolSize: 50,
  ignoreUndefined: true,
};

const clientOf = (url: string): MongoClient => {
  // The client would take "test" where the path names no database. Its own words may repeat the
  // address, and the password in it.
  if (!/^mongodb(\+srv)?:\/\/[^/?#]+\/[^/?#]+(\?|$)/.test(url))
    throw new ReadModelsUnavailable(
      'the address of the read models names no MongoDB server and database',
    );
  try {
    return new MongoClient(url, CLIENT_OPTIONS);
  } catch {
    throw new ReadModelsUnavailable(
      'the address of the read models is not one that MongoDB understands',
    );
  }
};

/** Never the server's own words about an operation: they may quote a document. */
const reasonOf = (error: MongoError): string => {
  if (error instanceof MongoServerError)
    return `the read models' server refused: ${error.codeName ?? error.code ?? error.name}`;
  return `the read models cannot be reached: ${error.message.split('\n', 1)[0] ?? error.name}`;
};

const failureOf = (error: unknown): Failure | undefined => {
  if (isDuplicate(error) || !(error instanceof MongoError)) return undefined;
  // A server that says no is there.
  return { reason: reasonOf(error), gone: !(error instanceof MongoServerError) };
};

const isDuplicate = (error: unknown): boolean => {
  if (error instanceof MongoBulkWriteError)
    return [error.writeErrors].flat().every((one) => one.code === DUPLICATE_KEY);
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
};

/** A broken connection says little about the server. Every call here may be made twice. */
const againAfterBreak =
  <T>(run: () => Promise<T>) =>
  (error: unknown): Promise<T> => {
    if (error instanceof MongoNetworkError && !(error instanceof MongoNetworkTimeoutError))
      return run();
    throw error;
  };

const unlessMissing = (error: unknown): void => {
  if (!(error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND)) throw error;
};

const pieces = <T>(all: T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / PIECE_MAX) }, (_, n) =>
    all.slice(n * PIECE_MAX, (n + 1) * PIECE_MAX),
  );

type Generation = {
  n: number;
  payments: Collection<StoredPayment>;
  parked: Collection<StoredParking>;
  /** The control document that holds its checkpoint. */
  checkpointId: string;
};

const SERVED = 'served';
const LEASE = 'lease';
const REBUILD = 'rebuild';
const NEWEST_FIRST = { createdAt: -1, _id: -1 } as const;
const INDEXES: { name: string; key: Record<string, 1 | -1> }[] = [
  { name: 'unresolved', key: { openSince: 1, _id: 1 } },
  { name: 'time', key: { createdAt: -1, _id: -1 } },
  { name: 'merchant', key: { merchantId: 1, createdAt: -1, _id: -1 } },
  { name: 'reference', key: { merchantReference: 1 } },
  { name: 'last4', key: { last4: 1, createdAt: -1, _id: -1 } },
];
const UNORDERED = { ordered: false } as const;

type Ask = <T>(run: () => Promise<T>) => Promise<T>;

/** What a writer needs to know of the database it writes to. */
type WriterDeps = {
  control: Collection<StoredControl>;
  read: Ask;
  write: Ask;
  /** The generation to write to, as it was when a batch begins. */
  generation(): Promise<Generation>;
  /** Refuses a batch for another generation than the one that should be written to. */
  check(at: Generation, control: StoredControl[]): void;
  onWritten(paymentId: string, revision: number): void;
};

type Writer = Pick<ReadModelsWriter, 'checkpoint' | 'checkpointHash' | 'load' | 'apply'> & {
  /** Read models as last written here, the latest last. */
  recent: BoundedMap<PaymentReadModel>;
};

const quick = { maxTimeMS: READ_MS_MAX };

/** FerretDB finds one id by its index, and several by reading everything. */
const oneOf = (ids: string[]) => (ids.length === 1 ? (ids[0] as string) : { $in: ids });

const revisions = (payments: Collection<StoredPayment>, ids: string[]) =>
  payments
    .find({ _id: oneOf(ids) }, { ...quick, projection: { revision: 1 } })
    .toArray() as Promise<Pick<StoredPayment, '_id' | 'revision'>[]>;

const byId = (found: { _id: string; revision: number }[]): Map<string, number> =>
  new Map(found.map(({ _id, revision }) => [_id, revision]));

const moved = (from: Position | null) =>
  new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);

const createWriter = (deps: WriterDeps): Writer => {
  const { control, read, write, generation } = deps;
  const recent = createBoundedMap<PaymentReadModel>(RECENT_READ_MODELS_MAX);
  /** The checkpoint as last seen here: any other means that the read models were wiped or moved. */
  let seen: Position | null | undefined;
  let indexed: number | undefined;

  const makeIndexes = async ({ n, payments }: Generation): Promise<void> => {
    if (indexed === n) return;
    // One by one: FerretDB 1.24 breaks the connection at a list that it has in part.
    for (const { key, name } of INDEXES) await write(() => payments.createIndex(key, { name }));
    indexed = n;
  };

  /** Refuses a writer that starts from elsewhere, or writes to read models that are served no more. */
  const checkPlace = async (at: Generation, from: Position | null): Promise<void> => {
    const ids = [SERVED, at.checkpointId];
    const found = await read(() => control.find({ _id: { $in: ids } }, quick).toArray());
    deps.check(at, found);
    const position = found.find(({ _id }) => _id === at.checkpointId)?.position ?? null;
    if (position !== from) throw moved(from);
  };

  /** Writes what is newer than what is stored. */
  const writeReadModels = async (
    { payments }: Generation,
    readModels: Batch['readModels'],
    stored: Map<string, number>,
  ): Promise<void> => {
    const documents = [...readModels.values()].map((written) => written.stored);
    const added = documents.filter(({ _id }) => !stored.has(_id));
    const changed = documents.filter(
      ({ _id, revision }) => (stored.get(_id) ?? revision) < revision,
    );
    const replacements = changed.map(({ _id, ...replacement }) => ({
      replaceOne: {
        filter: { _id, revision: { $lt: replacement.revision } },
        replacement,
        // Also where it is gone; a newer one makes this a duplicate key.
        upsert: true,
      },
    }));
    // Each piece has a budget of its own, so that a long batch is no slow server.
    for (const piece of pieces(added)) await write(() => payments.insertMany(piece, UNORDERED));
    for (const piece of pieces(replacements))
      await write(() => payments.bulkWrite(piece, UNORDERED));
  };

  const writeParkings = async (
    { payments, parked }: Generation,
    { readModels, parkings }: Batch,
    before: { stored: Map<string, number>; parked: Map<string, number> },
  ): Promise<void> => {
    const revisionNow = (id: string) =>
      Math.max(before.stored.get(id) ?? -1, readModels.get(id)?.stored.revision ?? -1);
    const over = [...before.parked].filter(([id, revision]) => revision <= revisionNow(id));
    const open = [...parkings.values()].filter((p) => revisionNow(p.paymentId) < p.revision);
    const listed = [
      ...over.map(([_id, revision]) => ({ deleteOne: { filter: { _id, revision } } })),
      ...open.map(({ paymentId, revision, reason, time }) => ({
        updateOne: {
          filter: { _id: paymentId },
          update: { $set: { revision, reason }, $setOnInsert: { since: time } },
          upsert: true,
        },
      })),
    ];
    if (listed.length > 0) await write(() => parked.bulkWrite(listed));
    const marks = open.map(({ paymentId: _id, revision }) => ({
      updateOne: {
        filter: { _id, revision: { $lt: revision } },
        update: { $set: { parkedAt: revision } },
      },
    }));
    if (marks.length > 0) await write(() => payments.bulkWrite(marks, UNORDERED));
  };

  const knownOf = (id: string): [string, number][] => {
    const revision = recent.get(id)?.revision;
    return revision === undefined ? [] : [[id, revision]];
  };

  /** What is stored now, as far as this batch needs to know. */
  const readBefore = async (at: Generation, { ids, parkings }: Batch, round: number) => {
    const known = new Map(ids.flatMap((id) => knownOf(id)));
    // At first what was written or read here is believed: where that is wrong, a guard says so.
    const believed = round === 1 && parkings.size === 0;
    const [stored, parked] = await read(() =>
      Promise.all([
        believed ? [] : revisions(at.payments, ids),
        at.parked.find({ _id: oneOf(ids) }, quick).toArray(),
      ]),
    );
    return { stored: believed ? known : byId(stored), parked: byId(parked) };
  };

  /** Throws a duplicate key's error when more is stored than was known. */
  const writeBatch = async (at: Generation, batch: Batch, round: number): Promise<void> => {
    const before = await readBefore(at, batch, round);
    for (const [id, parkedAt] of before.parked) {
      const written = batch.readModels.get(id);
      if (written !== undefined) written.stored.parkedAt = parkedAt;
    }
    await writeReadModels(at, batch.readModels, before.stored);
    await writeParkings(at, batch, before);
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
          throw new ReadModelsUnavailable('another writer is always faster');
      }
    }
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
      const loaded = readModelOf(stored);
      recent.set(paymentId, loaded);
      return loaded;
    },
    apply: async (changes, from, to, hash) => {
      const batch = batchOf(changes);
      const at = await generation();
      await checkPlace(at, from);
      await makeIndexes(at);
      if (batch.ids.length > 0) await writeUntilNewest(at, batch);
      await moveCheckpoint(at.checkpointId, from, to, hash ?? null);
    },
  };
};

/**
 * Opens the read models of a database. The server may still be out of reach: every call then ends
 * within its budget with ReadModelsUnavailable. Throws ReadModelsUnavailable, one line, for an address that
 * names no server or no database.
 */
export const openMongoReadModels = async ({
  url,
  rebuildMs = REBUILD_MS,
}: MongoReadModelsOptions): Promise<MongoReadModels> => {
  const client = clientOf(url);
  const db = client.db();
  const control = db.collection<StoredControl>(`${FORM}_control`);
  const door = createDoor({
    probe: () => db.command({ ping: 1 }),
    probeMsMax: READ_MS_MAX,
    failureOf,
    onDown: () => poller.giveUp(),
  });
  const ask = <T>(ms: number, run: () => Promise<T>): Promise<T> =>
    door.ask(ms, () => run().catch(againAfterBreak(run)));
  const read: Ask = (run) => ask(READ_MS_MAX, run);
  const write: Ask = (run) => ask(WRITE_MS_MAX, run);

  const generationOf = (n: number): Generation => ({
    n,
    payments: db.collection(`${FORM}_${n}_payments`),
    parked: db.collection(`${FORM}_${n}_parked`),
    checkpointId: `checkpoint_${n}`,
  });

  let served = { at: Number.NEGATIVE_INFINITY, ...generationOf(1) };
  const serve = (n: number): void => {
    served = { at: performance.now(), ...generationOf(n) };
  };
  const readServed = async (): Promise<Generation> => {
    if (performance.now() - served.at < SERVED_MS_MAX) return served;
    const found = await read(() => control.findOne({ _id: SERVED }, quick));
    serve(found?.generation ?? 1);
    return served;
  };

  const poller = createRevisionPoller({
    revisionsOf: async (ids) => {
      const { payments } = await readServed();
      return byId(await read(() => revisions(payments, ids)));
    },
  });

  const writer = createWriter({
    control,
    read,
    write,
    generation: readServed,
    check: ({ n }, found) => {
      const now = found.find(({ _id }) => _id === SERVED)?.generation ?? 1;
      if (now === n) return;
      serve(now);
      throw new CheckpointMoved('another generation of the read models is served now');
    },
    onWritten: poller.reached,
  });

  const find = async (filter: object): Promise<StoredPayment | undefined> => {
    const { payments } = await readServed();
    return (await read(() => payments.findOne(filter, quick))) ?? undefined;
  };
  const documentOf = (stored: StoredPayment | undefined) =>
    stored === undefined ? undefined : documentsOf([foundOf(stored)])[0];

  /** Takes or renews what one holder at a time may have. */
  const take = async (_id: string, holder: string, ttlMs: number): Promise<boolean> => {
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
  };
  const letGo = async (_id: string, holder: string): Promise<void> => {
    await write(() => control.deleteOne({ _id, holder }));
  };

  const checksumOf = async ({ payments }: Generation): Promise<ReadModelsChecksum> => {
    const sum = startChecksum();
    // By the page and by id: a cursor's later answers would have no budget of their own.
    for (let last = ''; ; ) {
      const page = await ask(SEARCH_MS_MAX, () =>
        payments
          .find({ _id: { $gt: last } }, { maxTimeMS: SEARCH_MS_MAX })
          .sort({ _id: 1 })
          .limit(PIECE_MAX)
          .toArray(),
      );
      for (const { _id, ...rest } of page) sum.add({ paymentId: _id, ...rest });
      last = page.at(-1)?._id ?? last;
      if (page.length < PIECE_MAX) return sum.result();
    }
  };

  const remove = async (n: number): Promise<void> => {
    const { payments, parked, checkpointId } = generationOf(n);
    for (const collection of [payments, parked])
      await write(() => collection.drop().catch(unlessMissing));
    await write(() => control.deleteOne({ _id: checkpointId }));
  };

  /** Every generation that has left something, the served one not among them. */
  const leftovers = async (servedN: number): Promise<number[]> => {
    const names = await read(() => db.listCollections({}, { nameOnly: true }).toArray());
    const found = names.map(({ name }) => name.match(`^${FORM}_(\\d+)_payments$`)?.[1]);
    return found.filter((n) => n !== undefined && Number(n) !== servedN).map(Number);
  };

  const openGeneration = async (): Promise<NextGeneration> => {
    const holder = crypto.randomUUID();
    if (!(await take(REBUILD, holder, rebuildMs)))
      throw new RebuildRunning('the read models are being rebuilt already');
    let renewing: Promise<unknown> = Promise.resolve();
    const renewal = setInterval(() => {
      renewing = take(REBUILD, holder, rebuildMs).catch(() => undefined);
    }, rebuildMs / 3).unref();
    const end = async (): Promise<void> => {
      clearInterval(renewal);
      // One that is under way would take again what is let go.
      await renewing;
      await letGo(REBUILD, holder);
    };
    try {
      // Named before it is ever compared; a duplicate key says that it is.
      await write(() => control.insertOne({ _id: SERVED, generation: 1 })).catch(
        (error: unknown) => {
          if (!isDuplicate(error)) throw error;
        },
      );
      served.at = Number.NEGATIVE_INFINITY;
      return await fillBeside((await readServed()).n, end);
    } catch (error) {
      await end().catch(() => undefined);
      throw error;
    }
  };

  const fillBeside = async (old: number, end: () => Promise<void>): Promise<NextGeneration> => {
    const left = await leftovers(old);
    for (const n of left) await remove(n);
    // A number that nobody has seen: a process may still hold one that was removed.
    const next = generationOf(Math.max(old, ...left) + 1);
    const { checkpoint, load, apply } = createWriter({
      control,
      read,
      write,
      generation: async () => next,
      check: () => undefined,
      onWritten: () => undefined,
    });
    let open = true;
    let isServed = false;
    return {
      checkpoint,
      load,
      apply,
      parked: (limit) => parkedIn(next, limit),
      checksum: () => checksumOf(next),
      serve: async () => {
        const { matchedCount } = await write(() =>
          control.updateOne({ _id: SERVED, generation: old }, { $set: { generation: next.n } }),
        );
        if (matchedCount === 0)
          throw new CheckpointMoved('another generation of the read models is served now');
        isServed = true;
        serve(next.n);
        writer.recent.clear();
      },
      end: async () => {
        if (!open) return;
        open = false;
        // Until then another process may still read the old one.
        if (isServed) await delay(SERVED_MS_MAX);
        await remove(isServed ? old : next.n);
        await end();
      },
    };
  };

  const parkedIn = async ({ parked }: Generation, limit: number) => {
    const found = await read(() =>
      parked.find({}, quick).sort({ since: 1, _id: 1 }).limit(limit).toArray(),
    );
    return found.map(({ _id, ...rest }) => ({ paymentId: _id, ...rest }));
  };

  return {
    get: async (paymentId, merchantId) =>
      documentOf(await find({ _id: text(paymentId), merchantId: text(merchantId) })),
    getAny: async (paymentId) => documentOf(await find({ _id: text(paymentId) })),
    search: async (search, limit) => {
      const { payments } = await readServed();
      const found = await ask(SEARCH_MS_MAX, () =>
        Promise.all(
          filtersOf(search).map((filter) =>
            payments
              .find(filter, { maxTimeMS: SEARCH_MS_MAX - 500 })
              .sort(NEWEST_FIRST)
              .limit(limit)
              .toArray(),
          ),
        ),
      );
      return documentsOf(newestOf(found.flat().map(foundOf), limit));
    },
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      if (door.isDown()) return false;
      if ((writer.recent.get(paymentId)?.revision ?? -1) >= revision) return true;
      return poller.wait(paymentId, revision, timeoutMs);
    },
    unresolved: async (limit) => {
      const { payments } = await readServed();
      const found = await read(() =>
        payments
          .find(
            { openSince: { $gt: '' } },
            { ...quick, projection: { merchantId: 1, openSince: 1 } },
          )
          .sort({ openSince: 1, _id: 1 })
          .limit(limit)
          .toArray(),
      );
      return found.map(({ _id, merchantId, openSince = '' }) => ({
        paymentId: _id,
        merchantId,
        since: openSince,
      }));
    },
    parked: async (limit) => parkedIn(await readServed(), limit),
    lease: async (holder, ttlMs) => take(LEASE, text(holder), ttlMs),
    release: async (holder) => letGo(LEASE, text(holder)),
    checkpoint: writer.checkpoint,
    checkpointHash: writer.checkpointHash,
    load: writer.load,
    apply: writer.apply,
    checksum: async () => checksumOf(await readServed()),
    openGeneration,
    ping: async () => void (await read(() => db.command({ ping: 1 }))),
    close: async () => {
      door.close();
      poller.close();
      writer.recent.clear();
      await client.close();
    },
  };
};

/** Apart from the read models' collections: what lies here is not lost when those are dropped. */
const KEPT = 'kept';

/**
 * One text under a name, changed only by who saw its last change: where the event feed keeps its
 * place (projector/relay/checkpoint/port.ts). Connects when it is first used.
 */
export const mongoKeyDocument = ({ url, name }: { url: string; name: string }) => {
  const client = clientOf(url);
  const kept = client.db().collection<{ _id: string; version: number; text: string }>(KEPT);
  return {
    load: async (): Promise<{ version: number; text: string } | undefined> => {
      const found = await kept.findOne({ _id: name }, quick);
      return found === null ? undefined : { version: found.version, text: found.text };
    },
    save: async (content: string, expectedVersion: number): Promise<boolean> => {
      const change = { $set: { version: expectedVersion + 1, text: content } };
      const upsert = expectedVersion === 0;
      try {
        const filter = { _id: name, version: expectedVersion };
        const { matchedCount, upsertedCount } = await kept.updateOne(filter, change, { upsert });
        return matchedCount + upsertedCount > 0;
      } catch (error) {
        if (isDuplicate(error)) return false;
        throw error;
      }
    },
    close: () => client.close(),
  };
};
