/**
 * The read models: one document per payment, written by the projector, read by the query API.
 * Every driver keeps these promises; test/contract/payment-views.test.ts asks each of them:
 *
 * - A document never goes back: a change whose revision is lower than or equal to the stored one
 *   is skipped.
 * - The checkpoint never gets ahead of the documents. Applying the same batch again is harmless.
 * - The checkpoint is compared and set: a writer whose `from` is not the stored one is refused.
 * - The body is handed back to the byte. A merchant never sees another merchant's document.
 */
import type { Position } from '../event-store/port.ts';
import type { PaymentView } from '../payment/view.ts';

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

/** A payment with an intent that has no outcome yet. */
export type UnsettledPayment = { paymentId: string; merchantId: string; since: string };

/** A payment whose document stopped at an event that could not be applied. */
export type ParkedPayment = { paymentId: string; revision: number; reason: string; since: string };

export type ViewChange =
  | { kind: 'view'; view: PaymentView }
  | { kind: 'park'; paymentId: string; revision: number; reason: string; time: string };

export type PaymentViewsReader = {
  /** The document, or undefined when there is none. Throws ViewsUnavailable. */
  get(paymentId: string): Promise<PaymentDocument | undefined>;
  /**
   * Resolves true as soon as the document has reached the revision, false after `timeoutMs`.
   * Never throws: a caller that waited in vain folds the stream.
   */
  waitForRevision(paymentId: string, revision: number, timeoutMs: number): Promise<boolean>;
  /** Payments with an open intent, oldest first. */
  unsettled(limit: number): Promise<UnsettledPayment[]>;
  /** Parked payments, oldest first. */
  parked(limit: number): Promise<ParkedPayment[]>;
};

export type PaymentViewsWriter = {
  /** The position up to which everything is in the views, or null at the start. */
  checkpoint(): Promise<Position | null>;
  /** The full view as it was last written, for the next event to be applied to. */
  load(paymentId: string): Promise<PaymentView | undefined>;
  /**
   * Writes documents and moves the checkpoint from `from` to `to`, in one step where the store has
   * one, else documents first. `from === to` leaves the checkpoint where it is.
   * Throws CheckpointMoved when another writer has moved it, ViewsUnavailable when out of reach.
   */
  apply(changes: ViewChange[], from: Position | null, to: Position | null): Promise<void>;
};

export type PaymentViews = PaymentViewsReader & PaymentViewsWriter & { close(): Promise<void> };

/** The read models cannot be reached now. `message` is one line for the log. */
export class ViewsUnavailable extends Error {
  override name = 'ViewsUnavailable';
}
/** Another projector has moved the checkpoint: this one must stand by. */
export class CheckpointMoved extends Error {
  override name = 'CheckpointMoved';
}
