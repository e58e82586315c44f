/** Compares what is stored of one payment with the fold of its stream, byte for byte (P1). */
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { foldStream } from '../shared/event-store/fold-stream.ts';
import type { EventStore, RecordedEvent } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/payment-events.ts';
import { foldReadModel } from '../shared/payment/response.ts';
import { contentOf, type DocumentRow, rowOf } from '../shared/read-models/document-row.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';

/** How a stored document differs from the log. */
export type DifferenceKind =
  /** The log has the payment, the read models do not. */
  | 'missing'
  /** The document does not have its check: somebody else wrote it, or the store damaged it. */
  | 'damaged'
  /** The document is an older one than the projector had applied events for. */
  | 'older'
  /** An index of the store does not lead to the document: lists and searches leave it out. */
  | 'unlisted'
  /** The document has its check, and the events up to its revision say something else. */
  | 'differs'
  /** The document is of a revision that the log does not have, or of a payment it does not have. */
  | 'not in the log'
  /** The document is there, and the events that it was made of cannot be read. */
  | 'unreadable'
  /** The projector has parked the payment: what GET and lists are served from is not brought up to date. */
  | 'parked';

export type Difference = { paymentId: string; kind: DifferenceKind; detail: string };

export type Compared = {
  store: Pick<EventStore, 'readStream' | 'readAll'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'inspect'>;
};

/** More events than this after the checkpoint: the projector is behind, and nothing is missing yet. */
const BEHIND_MAX = 1_000;

const SHOWN = ['merchantId', 'status', 'amount', 'revision'] as const;

/** Where two rows differ, in the columns that matter most; no names, no card data. */
const detailOf = (row: DocumentRow, inLog: DocumentRow): string => {
  const differing = SHOWN.filter((column) => row[column] !== inLog[column]);
  if (differing.length === 0) return 'the texts differ';
  return differing.map((name) => `${name} ${row[name]}, in the log ${inLog[name]}`).join('; ');
};

const differenceAt = (
  row: DocumentRow,
  events: RecordedEvent[],
): Pick<Difference, 'kind' | 'detail'> | undefined => {
  const last = events.at(-1)?.revision ?? -1;
  if (row.revision > last)
    return {
      kind: 'not in the log',
      detail: `revision ${row.revision}, and the log ends at ${last}`,
    };
  const inLog = foldStream(events.slice(0, row.revision + 1), foldReadModel);
  if (inLog === undefined) return { kind: 'not in the log', detail: 'the log has no such payment' };
  const expected = rowOf(inLog);
  if (contentOf(expected) === contentOf(row)) return undefined;
  return { kind: 'differs', detail: detailOf(row, expected) };
};

/** Whether the projector has applied this event: it is not among those after the checkpoint. */
const isApplied = async (
  { store }: Compared,
  checkpoint: string | null,
  { stream, revision }: RecordedEvent,
): Promise<boolean> => {
  const after = await store.readAll(checkpoint, BEHIND_MAX);
  const isThere = after.some((event) => event.stream === stream && event.revision <= revision);
  return after.length < BEHIND_MAX && !isThere;
};

const compare = async (
  compared: Compared,
  paymentId: string,
): Promise<Pick<Difference, 'kind' | 'detail'> | undefined> => {
  // Read first: what is before this checkpoint must be in a document that is read later.
  const checkpoint = await compared.readModels.checkpoint();
  const { row, whole, parked, unlisted } = await compared.readModels.inspect(paymentId);
  if (!whole) return { kind: 'damaged', detail: `revision ${row?.revision} without its check` };
  const events = await compared.store.readStream(streamOf(paymentId));
  const difference = row && differenceAt(row, events);
  if (difference !== undefined) return difference;
  if (unlisted !== undefined) return { kind: 'unlisted', detail: `not found by index ${unlisted}` };
  const next = events[(row?.revision ?? -1) + 1];
  // A parked payment is known to be behind.
  if (next === undefined || parked) return undefined;
  if (!(await isApplied(compared, checkpoint, next))) return undefined;
  if (row === undefined) return { kind: 'missing', detail: 'no document' };
  return { kind: 'older', detail: `revision ${row.revision}, in the log ${events.length - 1}` };
};

/**
 * The difference, or undefined where there is none; a document that the projector has not brought up
 * to date yet is none. Throws StoreUnavailable and ReadModelsUnavailable.
 */
export const comparePayment = async (
  compared: Compared,
  paymentId: string,
): Promise<Difference | undefined> => {
  try {
    const difference = await compare(compared, paymentId);
    return difference && { paymentId, ...difference };
  } catch (error) {
    if (!(error instanceof UnreadableStream)) throw error;
    const { row, parked } = await compared.readModels.inspect(paymentId);
    if (row === undefined || parked) return undefined;
    return { paymentId, kind: 'unreadable', detail: reasonOf(error) };
  }
};
