/**
 * The read models in one SQLite file of their own, read and written in the calling thread: a read
 * is a few microseconds, less than a message to another thread costs.
 *
 * The file holds nothing that the event log does not: it may be deleted while the service is
 * stopped. One that is damaged, or that another version of this code wrote, is thrown away and
 * filled again by the projector; it is never a reason not to start.
 */
import { renameSync } from 'node:fs';
import { setImmediate as immediate } from 'node:timers/promises';
import { bodyOf, type PaymentReadModel } from '../../payment/response.ts';
import { createBoundedMap } from '../../runtime/bounded-map.ts';
import { firstLineOf } from '../../runtime/error-text.ts';
import { type DocumentToSum, startChecksum } from '../checksum.ts';
import { CheckpointMoved } from '../errors.ts';
import type {
  ParkedPayment,
  PaymentDocument,
  ReadModelChange,
  ReadModels,
  UnresolvedPayment,
} from '../port.ts';
import { intact, type SummedRow, sumOf } from '../row-checksum.ts';
import { createRevisionWaiters } from '../waiters.ts';
import {
  isDamage,
  openConnection,
  removeFile,
  type SqliteReadModelsOptions,
  unavailable,
} from './connection.ts';
import { createGenerations } from './next-generation.ts';
import { searchSqlite } from './search.ts';

/** How many written read models are kept unparsed for the next event (some 3 kB each). */
const RECENT_READ_MODELS_MAX = 4096;
/** How many documents a checksum reads before it lets other work take its turn. */
const PAGE = 250;

const readModelOf = ({ merchantId, revision, unresolved, body }: SummedRow): PaymentReadModel => ({
  merchantId,
  revision,
  unresolved: unresolved === null ? [] : JSON.parse(unresolved),
  response: JSON.parse(body),
});

/** A document without what the file says of it besides. */
type Served = Pick<PaymentDocument, 'merchantId' | 'revision' | 'body'>;
type Written = { readModel: PaymentReadModel; body: string };

/**
 * Opens the read models' file, or makes it (mode 0600); a file that cannot be used is replaced by
 * an empty one with a warning, also while running. Throws ReadModelsUnavailable when the file can
 * neither be opened nor made.
 */
export const openSqliteReadModels = (options: SqliteReadModelsOptions): ReadModels => {
  const waiters = createRevisionWaiters();
  /** Read models as last written, the latest written last; never one that was not committed. */
  const recent = createBoundedMap<PaymentReadModel>(RECENT_READ_MODELS_MAX);
  /** Documents as last written or read: a look-up here costs a tenth of one in the file. */
  const documents = createBoundedMap<Served>(RECENT_READ_MODELS_MAX);

  let at = openConnection(options);
  // Spares every read and write a look into a table that is empty on all good days.
  let anyParked = at.parked.get(1) !== undefined;

  const forget = (): void => {
    recent.clear();
    documents.clear();
  };

  const replaceDamaged = (error: unknown): void => {
    options.logger?.warn(
      { file: options.file, reason: firstLineOf(error) },
      'read models are damaged',
    );
    at.db.close();
    forget();
    removeFile(options.file);
    at = openConnection(options);
    anyParked = false;
  };

  /** Runs a step on the file; one that turns out damaged is replaced by an empty one. */
  const orUnavailable = <T>(run: () => T): T => {
    try {
      return run();
    } catch (error) {
      if (isDamage(error)) replaceDamaged(error);
      throw unavailable(error);
    }
  };

  const serve = (paymentId: string, document: Served): Served => {
    documents.set(paymentId, document);
    return document;
  };

  const remember = ({ readModel, body }: Written): void => {
    const { merchantId, revision, response } = readModel;
    recent.set(response.paymentId, readModel);
    serve(response.paymentId, { merchantId, revision, body });
  };

  const read = (paymentId: string): Served | undefined => {
    const row = at.document.get(paymentId) as SummedRow | undefined;
    if (row === undefined) return undefined;
    const { merchantId, revision, body } = intact(paymentId, row);
    return serve(paymentId, { merchantId, revision, body });
  };

  /** The document's text, or undefined when the file had it at this revision already. */
  const writeReadModel = (readModel: PaymentReadModel): string | undefined => {
    const body = bodyOf(readModel);
    const { merchantId, revision } = readModel;
    const { paymentId, status, createdAt, amount, merchantReference } = readModel.response;
    const first = readModel.unresolved[0];
    const unresolved = first === undefined ? null : JSON.stringify(readModel.unresolved);
    const { changes } = at.write.run(
      paymentId,
      merchantId,
      revision,
      status,
      createdAt,
      amount,
      readModel.response.paymentMethod.card.last4,
      merchantReference ?? null,
      first?.since ?? null,
      unresolved,
      sumOf(paymentId, { merchantId, revision, unresolved, body }),
      body,
    );
    if (anyParked) at.unpark.run(paymentId, revision);
    return changes === 1 ? body : undefined;
  };

  const park = ({
    paymentId,
    revision,
    reason,
    time,
  }: ReadModelChange & { kind: 'park' }): void => {
    at.park.run(paymentId, revision, reason, time, paymentId, revision);
    anyParked = true;
  };

  /** One transaction; gives the read models that were written, not those that were skipped. */
  const write = (...[changes, from, to, hash]: Parameters<ReadModels['apply']>) => {
    const written: Written[] = [];
    at.begin.run();
    try {
      // seeded bug: checkpoint-compared
      if (at.move.run(to, hash ?? null, from).changes !== 1)
        throw new CheckpointMoved(`the read models' checkpoint is no longer ${from}`);
      for (const change of changes) {
        if (change.kind === 'park') park(change);
        else {
          const body = writeReadModel(change.readModel);
          if (body !== undefined) written.push({ readModel: change.readModel, body });
        }
      }
      at.commit.run();
      return written;
    } catch (error) {
      if (at.db.isTransaction) at.rollback.run();
      throw error;
    }
  };

  const documentOf = (paymentId: string): PaymentDocument | undefined => {
    const document = documents.get(paymentId) ?? read(paymentId);
    if (document === undefined) return undefined;
    const parked = anyParked && at.isParked.get(paymentId) !== undefined;
    return { paymentId, ...document, parked };
  };

  /** In pages, so that other work gets its turn between them. */
  const checksum = async () => {
    const sum = startChecksum();
    let last = Number.MIN_SAFE_INTEGER;
    for (;;) {
      const page = orUnavailable(() => at.page.all(last, PAGE)) as (DocumentToSum & {
        rowid: number;
      })[];
      for (const document of page) sum.add(document);
      if (page.length < PAGE) return sum.result();
      last = page.at(-1)?.rowid ?? last;
      await immediate();
    }
  };

  /** In one turn of the event loop: no reader finds the file missing. A crash leaves either one. */
  const replaceBy = (file: string): void => {
    at.db.close();
    try {
      renameSync(file, options.file);
    } finally {
      forget();
      at = openConnection(options);
      anyParked = at.parked.get(1) !== undefined;
    }
  };

  const openGeneration = createGenerations({
    file: `${options.file}.next`,
    open: (file) => openSqliteReadModels({ ...options, file }),
    isOpen: () => at.db.isOpen,
    replaceBy: (file) => orUnavailable(() => replaceBy(file)),
  });

  const revisionOf = (paymentId: string): number =>
    recent.get(paymentId)?.revision ??
    (at.revision.get(paymentId)?.revision as number | undefined) ??
    -1;

  return {
    get: async (paymentId, merchantId) => {
      const document = orUnavailable(() => documentOf(paymentId));
      // seeded bug: document-of-merchant
      return document?.merchantId === merchantId ? document : undefined;
    },
    getAny: async (paymentId) => orUnavailable(() => documentOf(paymentId)),
    search: async (search, limit) => orUnavailable(() => searchSqlite(at.db, search, limit)),
    waitForRevision: async (paymentId, revision, timeoutMs) => {
      try {
        if (orUnavailable(() => revisionOf(paymentId)) >= revision) return true;
      } catch {
        return false;
      }
      return waiters.wait(paymentId, revision, timeoutMs);
    },
    unresolved: async (limit) =>
      orUnavailable(() => at.unresolved.all(limit).map((row) => ({ ...row }) as UnresolvedPayment)),
    parked: async (limit) =>
      orUnavailable(() => at.parked.all(limit).map((row) => ({ ...row }) as ParkedPayment)),
    // One process holds the data folder, and with it this file.
    lease: async () => true,
    release: async () => undefined,
    checkpoint: async () =>
      orUnavailable(() => (at.checkpoint.get()?.position ?? null) as string | null),
    checkpointHash: async (position) =>
      orUnavailable(() => {
        const stored = at.checkpoint.get();
        return stored?.position === position ? (stored.hash as string | null) : null;
      }),
    load: async (paymentId) => {
      const readModel = recent.get(paymentId);
      if (readModel !== undefined) return readModel;
      return orUnavailable(() => {
        const row = at.document.get(paymentId) as SummedRow | undefined;
        return row === undefined ? undefined : readModelOf(intact(paymentId, row));
      });
    },
    apply: async (...batch) => {
      for (const written of orUnavailable(() => write(...batch))) {
        remember(written);
        waiters.reached(written.readModel.response.paymentId, written.readModel.revision);
      }
    },
    checksum,
    openGeneration,
    close: async () => {
      waiters.close();
      forget();
      if (at.db.isOpen) at.db.close();
    },
  };
};
