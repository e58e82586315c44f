/** About how much memory a payment takes, for caches that are bounded by bytes (ADR-0112). */
import type { PaymentReadModel } from './payment-response.ts';

// Measured: 1.8 MB for a payment of 2,001 events with its folds. Texts at their maximum take more.
const EVENT_BYTES = 1_000;
const READ_MODEL_BYTES = 4_000;
const TRANSACTION_BYTES = 400;
const ITEM_BYTES = 1_200;

/** Bytes of a read model, by the number of what it lists; nothing is serialized. */
export const bytesOfReadModel = ({ response, unresolved }: PaymentReadModel): number =>
  READ_MODEL_BYTES +
  (response.transactions.length + (response.disputes?.length ?? 0) + unresolved.length) *
    TRANSACTION_BYTES +
  (response.productItems?.length ?? 0) * ITEM_BYTES;

/** Bytes of a payment with all its events and both folds of them. */
export const bytesOfPayment = (payment: {
  events: readonly unknown[];
  readModel: PaymentReadModel;
}): number => payment.events.length * EVENT_BYTES + bytesOfReadModel(payment.readModel);
