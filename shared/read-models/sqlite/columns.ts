/** The columns of a payment's row in the read models' file. */
import type { DocumentRow } from '../document-row.ts';

/** A row with its check. */
export type CheckedRow = DocumentRow & { rowCheck: string };

/** The columns of CheckedRow. */
export const ROW = `payment_id AS paymentId, merchant_id AS merchantId, revision, status,
  created_at AS createdAt, amount, last4, merchant_reference AS merchantReference,
  unresolved_since AS unresolvedSince, unresolved, row_check AS rowCheck, body`;
