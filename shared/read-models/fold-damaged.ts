/** A search shows the stream's fold for a document without its check, if the fold meets the search. */
import { UnreadableStream } from '../event-store/errors.ts';
import { foldStream } from '../event-store/fold-stream.ts';
import type { EventStore } from '../event-store/port.ts';
import { streamOf } from '../payment/events.ts';
import { foldReadModel } from '../payment/fold.ts';
import { onError } from '../runtime/error-text.ts';
import { type DocumentRow, rowOf } from './document-row.ts';
import type { PaymentDocument, PaymentSearch } from './port.ts';

/** Whether a row meets each condition of a search but its place, which the damaged row had itself. */
const meets = (row: DocumentRow, search: PaymentSearch): boolean => {
  const { merchantId, text, merchantReference, status, from, to, minAmount, maxAmount } = search;
  return (
    (merchantId === undefined || row.merchantId === merchantId) &&
    (text === undefined || [row.paymentId, row.merchantReference, row.last4].includes(text)) &&
    (merchantReference === undefined || row.merchantReference === merchantReference) &&
    (status === undefined || row.status === status) &&
    (from === undefined || row.createdAt >= from) &&
    (to === undefined || row.createdAt < to) &&
    row.amount >= (minAmount ?? row.amount) &&
    row.amount <= (maxAmount ?? row.amount)
  );
};

const foldOf = async (
  store: Pick<EventStore, 'readStream'>,
  paymentId: string,
): Promise<DocumentRow | undefined> => {
  const events = store.readStream(streamOf(paymentId));
  const folded = events.then((all) => foldStream(all, foldReadModel));
  const readModel = await folded.catch(onError(UnreadableStream, () => undefined));
  return readModel && rowOf(readModel);
};

/** Damaged documents are left out where their stream cannot be read. Throws StoreUnavailable. */
export const foldDamaged = async (
  store: Pick<EventStore, 'readStream'>,
  search: PaymentSearch,
  found: PaymentDocument[],
): Promise<PaymentDocument[]> => {
  if (!found.some(({ damaged }) => damaged)) return found;
  const documents = await Promise.all(
    found.map(async (document): Promise<PaymentDocument[]> => {
      if (!document.damaged) return [document];
      const row = await foldOf(store, document.paymentId);
      if (row === undefined || !meets(row, search)) return [];
      const { paymentId, merchantId, revision, body } = row;
      return [{ paymentId, merchantId, revision, body, parked: false }];
    }),
  );
  return documents.flat();
};
