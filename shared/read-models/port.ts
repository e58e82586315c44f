/**
 * One document per payment, from the projector, for the query API. test/read-models tests each driver for:
 * - A document never goes back: a change whose revision is not above the stored one is skipped.
 * - The checkpoint never gets ahead of the documents. Applying the same batch again is harmless.
 * - The checkpoint is compared and set: a writer whose `from` is not the stored one is refused.
 * - The body is returned to the byte. A merchant never sees another merchant's document.
 * - A keyed check covers all of a document, its searched columns included (ADR-0121). One without its check is
 *   never served, and is reported.
 * - Safety rests on the first three: the lease only spares two projectors the same work; no write checks it.
 */
import type { Position } from '../event-store/port.ts';
import type { PaymentStatus } from '../payment/fields.ts';
import type { PaymentReadModel } from '../payment/state.ts';
import type { DocumentRow } from './document-row.ts';

export type PaymentDocument = {
  paymentId: string;
  merchantId: string;
  /** Of the last event in it, from 0. */
  revision: number;
  /** The JSON text of the PaymentResponse, with its box in place of what that holds. */
  body: string;
  /** `body` is as it is shown: a process that opens boxes has replaced it (personal-data/opener.ts). */
  isOpened?: true;
  /** A poison event keeps the document from being up to date: fold the stream instead. */
  parked: boolean;
  /** Without its check: trust `paymentId` alone, and fold the stream. Only `search` gives one. */
  damaged?: true;
};

/** Looked up past every cache, to be compared with the log. */
export type StoredDocument = {
  row: DocumentRow | undefined;
  /** True when the row has its check, and when there is no row. */
  whole: boolean;
  parked: boolean;
};

/** Newest first; each given condition holds. Auditors and operators may leave out the merchant. */
export type PaymentSearch = {
  merchantId?: string | undefined;
  /** A paymentId, a merchantReference or a card's last four digits, each whole and exact. */
  text?: string | undefined;
  /** `text` also finds ids and last digits that read like it. */
  merchantReference?: string | undefined;
  status?: PaymentStatus | undefined;
  /** createdAt, RFC 3339 in UTC with milliseconds: `from` inclusive, `to` exclusive. */
  from?: string | undefined;
  to?: string | undefined;
  /** The authorized amount in minor units, both inclusive. */
  minAmount?: number | undefined;
  maxAmount?: number | undefined;
  /** The `searchedTo` of the page before. */
  after?: { createdAt: string; paymentId: string } | undefined;
};

export type PaymentSearchPage = {
  documents: PaymentDocument[];
  /**
   * Present where more may be found (the page is full, or the search looked at as many payments as it may):
   * `documents` has all up to this place, as stored even for a damaged one, and the search goes on after it.
   */
  searchedTo?: { createdAt: string; paymentId: string };
};

/** The oldest intent without an outcome is from `since`. */
export type UnresolvedPayment = { paymentId: string; merchantId: string; since: string };

/** Its document stopped at an event that could not be applied. */
export type ParkedPayment = { paymentId: string; revision: number; reason: string; since: string };

/** The list of parked payments is ordered by `since` and then by `paymentId`. */
export type ParkedPlace = Pick<ParkedPayment, 'since' | 'paymentId'>;

export type ReadModelChange =
  | { kind: 'readModel'; readModel: PaymentReadModel }
  | { kind: 'park'; paymentId: string; revision: number; reason: string; time: string }
  /** Whatever the revision of its document; comes before a parking of the same batch. */
  | { kind: 'unpark'; paymentId: string };
export type Parking = Extract<ReadModelChange, { kind: 'park' }>;
export type Unparking = Extract<ReadModelChange, { kind: 'unpark' }>;

/**
 * For the query API. Each call but `waitForRevision`, `onDamage` and `damaged` throws ReadModelsUnavailable,
 * and ReadModelsLost where the store is a file that another program has damaged or deleted.
 */
export type ReadModelsReader = {
  /** Another merchant's payment looks like one that does not exist. */
  get(paymentId: string, merchantId: string): Promise<PaymentDocument | undefined>;
  /** Of any merchant: for auditors and operators. */
  getAny(paymentId: string): Promise<PaymentDocument | undefined>;
  /**
   * At most `limit` documents, newest first by createdAt and then by id, and no more than 256 KiB of bodies
   * (PAGE_BYTES_MAX) where more than one. It holds no other call up, however many payments there are.
   */
  search(search: PaymentSearch, limit: number): Promise<PaymentSearchPage>;
  /** True once the document has the revision, false after `timeoutMs`: then fold. Never throws. */
  waitForRevision(paymentId: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** Payments with an unresolved intent, oldest first. */
  unresolved(limit: number): Promise<UnresolvedPayment[]>;
  /** Oldest first; with `after`, those that come after that place. */
  parked(limit: number, after?: ParkedPlace): Promise<ParkedPayment[]>;
  inspect(paymentId: string): Promise<StoredDocument>;
  /** The stored checkpoint; null at the start. */
  filledTo(): Promise<Position | null>;
  /** The next payments with a document after this id (null: from the start), in the order of ids. */
  idsAfter(paymentId: string | null, limit: number): Promise<string[]>;
  /** Calls back once per document found without its check, and with WHOLE_FILE for an unreadable file. */
  onDamage(listener: (paymentId: string, reason: string) => void): void;
  /** Those of which the last read found so. */
  damaged(): string[];
};

/** For the projector. Each call throws ReadModelsUnavailable. */
export type ReadModelsWriter = {
  /**
   * Takes or renews the right to follow the log; false while another has it. `free`: no other holder had it,
   * or it was released; `held`: it was renewed, or the time of the holder before had run out.
   */
  lease(holder: string, ttlMs: number): Promise<'free' | 'held' | false>;
  /** Does nothing where another holder has it. The next holder need not wait for the lease's end. */
  release(holder: string): Promise<void>;
  /** Everything up to here is in the read models; null at the start. */
  checkpoint(): Promise<Position | null>;
  /** The `hash` that `apply` stored at this position; null without one, or where the checkpoint has moved. */
  checkpointHash(at: Position): Promise<string | null>;
  /** The read model as it was last written, for the next event to be applied to. */
  load(paymentId: string): Promise<PaymentReadModel | undefined>;
  /**
   * Writes documents and moves the checkpoint from `from` to `to`, in one step where the store has one, else
   * documents first. `from === to` leaves it where it is. `hash` is the log's at `to`: it shows a start whether
   * the documents are of this log. Throws CheckpointMoved where another writer has moved it.
   */
  apply(
    changes: ReadModelChange[],
    from: Position | null,
    to: Position | null,
    hash?: string,
  ): Promise<void>;
};

/** Two sets of read models are equal where all their documents are. `hash` is hex. */
export type ReadModelsChecksum = { documents: number; hash: string };

/** A new set of read models, filled next to the served one; no request reads it before `serve`. */
export type NextGeneration = Pick<ReadModelsWriter, 'checkpoint' | 'load' | 'apply'> &
  Pick<ReadModelsReader, 'parked' | 'inspect'> & {
    checksum(): Promise<ReadModelsChecksum>;
    /** Closes the generation here while another thread fills its file. Undefined where the store is none. */
    handOver?<T>(step: (file: ReadModelsFile) => Promise<T>): Promise<T>;
    /**
     * Serves it from now on, at once and whole. Throws CheckpointMoved where another is served, RebuildRunning
     * where another rebuild has replaced this one, ReadModelsUnavailable: in a database it may be served then.
     */
    serve(): Promise<void>;
    /** Removes the unserved generation. Where it throws, both stay until the next rebuild. */
    end(): Promise<void>;
  };

/** Read models that another thread can open. */
export type ReadModelsFile = {
  file: string;
  /** The idempotency secret, and the earlier one during a rotation (document-row.ts). */
  secrets: readonly [string, ...string[]];
};

export type ReadModelsRebuild = {
  /** Of the served documents; their order does not matter. */
  checksum(): Promise<ReadModelsChecksum>;
  /** An empty generation, after a killed one's is removed. Throws RebuildRunning. */
  openGeneration(): Promise<NextGeneration>;
};

/** What a comparison with the log reads; nothing of it comes from a cache. */
export type ComparedReadModels = Pick<
  ReadModelsReader,
  'filledTo' | 'idsAfter' | 'inspect' | 'parked'
> & {
  /** Names an index that misses a document; undefined for none, or once aborted. Servers keep theirs. */
  indexDamage?(signal: AbortSignal): Promise<string | undefined>;
};

export type ReadModels = ReadModelsReader &
  ReadModelsWriter &
  ReadModelsRebuild & {
    /** For a step in which another thread reads the served file. Undefined where the store is none. */
    compareElsewhere?<T>(step: (file: ReadModelsFile) => Promise<T>): Promise<T>;
    /** Of read models whose searches wait for it (filled.ts). */
    isFilled?(): Promise<boolean>;
    close(): Promise<void>;
  };
