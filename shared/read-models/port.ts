/**
 * The read models: one document per payment, written by the projector, read by the query API.
 * Every driver keeps these promises; test/contract/read-models asks each of them:
 *
 * - A document never goes back: a change whose revision is lower than or equal to the stored one
 *   is skipped.
 * - The checkpoint never gets ahead of the documents. Applying the same batch again is harmless.
 * - The checkpoint is compared and set: a writer whose `from` is not the stored one is refused.
 * - The body is handed back to the byte. A merchant never sees another merchant's document.
 * - Safety rests on the first three alone: the lease only keeps two projectors out of each other's
 *   way, and is neither asked nor trusted when something is written.
 */
import type { Position } from '../event-store/port.ts';
import type { PaymentStatus } from '../payment/payment-status.ts';
import type { PaymentReadModel } from '../payment/response.ts';

/** A payment as it is served. */
export type PaymentDocument = {
  paymentId: string;
  merchantId: string;
  /** The revision, from 0, of the last event in it. */
  revision: number;
  /** The JSON text of the PaymentResponse, sent as it is. */
  body: string;
  /** True when a poison event stopped this payment's document: fold the stream instead. */
  parked: boolean;
};

/**
 * What to look for, newest first; everything that is given has to hold. Only an auditor's or an
 * operator's search leaves out the merchant.
 */
export type PaymentSearch = {
  merchantId?: string;
  /** A paymentId, a merchantReference or a card's last four digits, each whole and exact. */
  text?: string;
  /** Exactly this merchantReference, and nothing else that reads like it. */
  merchantReference?: string;
  status?: PaymentStatus;
  /** createdAt, RFC 3339 in UTC with milliseconds: `from` inclusive, `to` exclusive. */
  from?: string;
  to?: string;
  /** The authorized amount in minor units, both inclusive. */
  minAmount?: number;
  maxAmount?: number;
  /** Goes on behind this payment: the last one of the page before. */
  after?: { createdAt: string; paymentId: string };
};

/** A payment with an intent that has no outcome yet. */
export type UnresolvedPayment = { paymentId: string; merchantId: string; since: string };

/** A payment whose document stopped at an event that could not be applied. */
export type ParkedPayment = { paymentId: string; revision: number; reason: string; since: string };

export type ReadModelChange =
  | { kind: 'readModel'; readModel: PaymentReadModel }
  | { kind: 'park'; paymentId: string; revision: number; reason: string; time: string };

export type ReadModelsReader = {
  /**
   * The document, or undefined when this merchant has none of that id: another merchant's payment
   * is not told from one that does not exist. Throws ReadModelsUnavailable.
   */
  get(paymentId: string, merchantId: string): Promise<PaymentDocument | undefined>;
  /** The document whoever owns it: for auditors and operators. Throws ReadModelsUnavailable. */
  getAny(paymentId: string): Promise<PaymentDocument | undefined>;
  /** At most `limit` documents, by createdAt and then by id, newest first. */
  search(search: PaymentSearch, limit: number): Promise<PaymentDocument[]>;
  /**
   * Resolves true as soon as the document has reached the revision, false after `timeoutMs`.
   * Never throws: a caller that waited in vain folds the stream.
   */
  waitForRevision(paymentId: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** Payments with an unresolved intent, oldest first. */
  unresolved(limit: number): Promise<UnresolvedPayment[]>;
  /** Parked payments, oldest first. */
  parked(limit: number): Promise<ParkedPayment[]>;
};

export type ReadModelsWriter = {
  /**
   * Takes or renews the right to follow the log, for `ttlMs` from now; false while another holder
   * has it. A read models' store that only one process can open always says true.
   * Throws ReadModelsUnavailable.
   */
  lease(holder: string, ttlMs: number): Promise<boolean>;
  /** Lets go of the lease, if this holder has it, so that another need not wait for its end. */
  release(holder: string): Promise<void>;
  /** The position up to which everything is in the read models, or null at the start. */
  checkpoint(): Promise<Position | null>;
  /**
   * What `apply` was given beside a position, while the checkpoint stands there; null elsewhere,
   * for another writer may have moved it, and where nothing was given.
   */
  checkpointHash(at: Position): Promise<string | null>;
  /** The full read model as it was last written, for the next event to be applied to. */
  load(paymentId: string): Promise<PaymentReadModel | undefined>;
  /**
   * Writes documents and moves the checkpoint from `from` to `to`, in one step where the store has
   * one, else documents first. `from === to` leaves the checkpoint where it is. `hash` is that of
   * the event at `to`, kept beside it: it tells whether the log is still the one they were made of.
   * Throws CheckpointMoved when another writer has moved it, ReadModelsUnavailable when out of reach.
   */
  apply(
    changes: ReadModelChange[],
    from: Position | null,
    to: Position | null,
    hash?: string,
  ): Promise<void>;
};

/** Tells two sets of read models apart: equal when every document of them is. */
export type ReadModelsChecksum = { documents: number; hash: string };

/** A new set of read models, filled beside the one that is served; nobody reads it yet. */
export type NextGeneration = Pick<ReadModelsWriter, 'checkpoint' | 'load' | 'apply'> &
  Pick<ReadModelsReader, 'parked'> & {
    checksum(): Promise<ReadModelsChecksum>;
    /** Serves it from now on, at once and whole. Throws CheckpointMoved when another one is. */
    serve(): Promise<void>;
    /** Ends the rebuild and removes what is not served, this generation or the old one. */
    end(): Promise<void>;
  };

export type ReadModelsRebuild = {
  /** Over the served documents, in whatever order they lie. */
  checksum(): Promise<ReadModelsChecksum>;
  /**
   * An empty generation, after what a killed rebuild left behind is removed.
   * Throws RebuildRunning while another one is open.
   */
  openGeneration(): Promise<NextGeneration>;
};

export type ReadModels = ReadModelsReader &
  ReadModelsWriter &
  ReadModelsRebuild & { close(): Promise<void> };
