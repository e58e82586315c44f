/** Compares read models with the log, byte for byte (P1): one payment, or all of them. Changes nothing. */
import { isReadable } from '../shared/event-store/codec.ts';
import { UnreadableStream } from '../shared/event-store/errors.ts';
import { foldStream } from '../shared/event-store/fold-stream.ts';
import type { EventStore, LogEvent, Position, RecordedEvent } from '../shared/event-store/port.ts';
import { paymentOf, streamOf } from '../shared/payment/payment-events.ts';
import { foldReadModel } from '../shared/payment/response.ts';
import { contentOf, type DocumentRow, rowOf } from '../shared/read-models/document-row.ts';
import { documentPages, parkedPayments } from '../shared/read-models/pages.ts';
import type { ReadModels } from '../shared/read-models/port.ts';
import { reasonOf } from '../shared/runtime/error-text.ts';
import { fewAtOnce } from '../shared/runtime/scheduling.ts';

export type DifferenceKind =
  | 'missing'
  /** It does not have its check: another program wrote it, or the store damaged it. */
  | 'damaged'
  /** The document is older than the events that the projector had applied. */
  | 'older'
  /** An index of the store does not lead to it: lists and searches leave it out. */
  | 'unlisted'
  /** It has its check, and the events up to its revision say something else. */
  | 'differs'
  | 'not in the log'
  | 'unreadable'
  /** The projector does not bring the document up to date. */
  | 'parked';

export type Difference = { paymentId: string; kind: DifferenceKind; detail: string };

export type Compared = {
  store: Pick<EventStore, 'readStream' | 'readAll'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'inspect'>;
};

/** With more events after the checkpoint the projector is behind, and nothing is missing yet. */
const BEHIND_MAX = 1_000;

const SHOWN = ['merchantId', 'status', 'amount', 'revision'] as const;

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
  // Read first: every event before this checkpoint is then in the document that is read later.
  const checkpoint = await compared.readModels.checkpoint();
  const { row, whole, parked, unlisted } = await compared.readModels.inspect(paymentId);
  if (!whole) return { kind: 'damaged', detail: `revision ${row?.revision} without its check` };
  const events = await compared.store.readStream(streamOf(paymentId));
  const difference = row && differenceAt(row, events);
  if (difference !== undefined) return difference;
  if (unlisted !== undefined) return { kind: 'unlisted', detail: `not found by index ${unlisted}` };
  const next = events[(row?.revision ?? -1) + 1];
  if (next === undefined || parked) return undefined;
  if (!(await isApplied(compared, checkpoint, next))) return undefined;
  if (row === undefined) return { kind: 'missing', detail: 'no document' };
  return { kind: 'older', detail: `revision ${row.revision}, in the log ${events.length - 1}` };
};

/** A document that only lags is no difference. Throws StoreUnavailable and ReadModelsUnavailable. */
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

const NAMED_MAX = 100;
const PAGE = 250;
const NO_PAYMENT = '-';

export type ComparisonProgress = { done: number; total: number };

export type Comparison = {
  documents: number;
  payments: number;
  kinds: Partial<Record<DifferenceKind, number>>;
  differences: number;
  named: Difference[];
};

export type CompareAllOptions = {
  store: Pick<EventStore, 'readStream' | 'readAll' | 'end'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'inspect' | 'idsAfter' | 'parked' | 'indexDamage'>;
  onProgress?: ((progress: ComparisonProgress) => void) | undefined;
  signal?: AbortSignal;
};

/** The payments that begin in each page of so many events, up to where the log ends now. */
export async function* paymentPages(
  { end, readAll }: Pick<EventStore, 'end' | 'readAll'>,
  size: number,
): AsyncGenerator<string[]> {
  const until = await end();
  for (let last: Position | null = null; last !== until; ) {
    const events: LogEvent[] = await readAll(last, size, until);
    if (events.length === 0) return;
    // A foreign event begins no payment, and a payment whose first event cannot be read is parked.
    const begun = events.filter((event) => event.revision === 0 && isReadable(event));
    yield begun.flatMap(({ stream }) => paymentOf(stream) ?? []);
    last = events.at(-1)?.position ?? until;
  }
}

/** Compares every payment; also finds missing documents, damaged indexes and parked payments. Throws what the engines throw. */
export const compareAll = async (options: CompareAllOptions): Promise<Comparison> => {
  const { store, readModels, onProgress, signal } = options;
  const found: Comparison = { documents: 0, payments: 0, kinds: {}, differences: 0, named: [] };
  const note = (difference: Difference | undefined): void => {
    if (difference === undefined) return;
    const { kind } = difference;
    if (found.named.length < NAMED_MAX) found.named.push(difference);
    found.differences += 1;
    found.kinds[kind] = (found.kinds[kind] ?? 0) + 1;
  };
  const compare = async (paymentIds: string[]): Promise<void> => {
    const look = (paymentId: string) => comparePayment(options, paymentId);
    for (const one of await fewAtOnce(paymentIds, look)) note(one);
  };
  let expected = 0;
  for await (const ids of documentPages(readModels, PAGE)) {
    signal?.throwIfAborted();
    expected += ids.length;
  }
  const report = (): void => {
    const done = found.documents + found.payments;
    onProgress?.({ done, total: Math.max(done, 2 * expected) });
  };

  report();
  for await (const ids of documentPages(readModels, PAGE)) {
    signal?.throwIfAborted();
    await compare(ids);
    found.documents += ids.length;
    report();
  }
  for await (const ids of paymentPages(store, PAGE)) {
    signal?.throwIfAborted();
    const stored = await fewAtOnce(ids, readModels.inspect);
    await compare(ids.filter((_, at) => stored[at]?.row === undefined));
    found.payments += ids.length;
    report();
  }
  for await (const { paymentId, reason } of parkedPayments(readModels, PAGE)) {
    signal?.throwIfAborted();
    const isNamed = (await comparePayment(options, paymentId)) !== undefined;
    if (!isNamed) note({ paymentId, kind: 'parked', detail: reason });
  }
  const detail = await readModels.indexDamage?.(signal);
  if (detail !== undefined) note({ paymentId: NO_PAYMENT, kind: 'unlisted', detail });
  return found;
};
