/** Whether a document may be older than its stream, in a process beside which others append (gaps §9). */
import type { EventStore } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/payment-events.ts';

/**
 * Called before the document is read. A Check takes its revision; true: later events may be stored.
 * Throws as `lastRevision` of the event store.
 */
export type Behind = (paymentId: string) => Check;
type Check = (revision: number) => boolean | Promise<boolean>;

export const behindTheStream =
  (store: Pick<EventStore, 'lastRevision'>): Behind =>
  (paymentId) => {
    const last = store.lastRevision(streamOf(paymentId));
    // A request without a document never awaits `last`, whose rejection must not end the process.
    last.catch(() => undefined);
    return async (revision) => (await last) !== revision;
  };
