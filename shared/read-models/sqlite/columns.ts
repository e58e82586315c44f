/** The columns of a payment's row in the read models' file. */
import { capped } from '../../runtime/capped-column.ts';
import type { DocumentRow } from '../document-row.ts';

export type CheckedRow = DocumentRow & { rowCheck: string };

/** In the order of DocumentRow, without the body. */
export type ColumnList = [
  paymentId: string,
  merchantId: string,
  revision: number,
  status: string,
  createdAt: string,
  amount: number,
  last4: string,
  merchantReference: string | null,
  unresolvedSince: string | null,
  unresolved: string | null,
];

const REVISION = capped('revision');
const AMOUNT = capped('amount');

export const ROW = `payment_id AS paymentId, merchant_id AS merchantId, ${REVISION} AS revision, status,
  created_at AS createdAt, ${AMOUNT} AS amount, last4, merchant_reference AS merchantReference,
  unresolved_since AS unresolvedSince, unresolved, row_check AS rowCheck, body`;

export const COLUMNS = `payment_id, merchant_id, ${REVISION}, status, created_at, ${AMOUNT}, last4,
  merchant_reference, unresolved_since, unresolved`;
