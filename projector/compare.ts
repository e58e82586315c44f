/** Compares all read models with the log, byte for byte, and with their indexes (P1). Changes nothing. */
import { setImmediate as turn } from 'node:timers/promises';
import { isReadable } from '../shared/event-store/codec.ts';
import { asUnreadable, UnreadableStream } from '../shared/event-store/errors.ts';
import { foldStream } from '../shared/event-store/fold-stream.ts';
import type {
  EventStore,
  LogEvent,
  LogJob,
  Position,
  RecordedEvent,
} from '../shared/event-store/port.ts';
import { positionAsNumber } from '../shared/event-store/scan-log.ts';
import { paymentOf, streamOf } from '../shared/payment/events.ts';
import { foldReadModel } from '../shared/payment/fold.ts';
import { WHOLE_FILE } from '../shared/read-models/damage.ts';
import { contentOf, type DocumentRow, rowOf } from '../shared/read-models/document-row.ts';
import { documentPages, parkedPayments } from '../shared/read-models/pages.ts';
import type { ComparedReadModels, ReadModelsFile } from '../shared/read-models/port.ts';
import { openCompared } from '../shared/read-models/sqlite/compared.ts';
import { fewAtOnce } from '../shared/runtime/scheduling.ts';
import type { ReadModelsComparison as Comparison } from './contract.ts';

type DifferenceKind =
  | 'missing'
  /** It does not have its check: another program wrote it, or the store damaged it. */
  | 'damaged'
  /** The document is older than the events that the projector had applied. */
  | 'older'
  /** An index of the store does not lead to all documents: lists and searches leave some out. */
  | 'unlisted'
  /** It has its check, and the events up to its revision say something else. */
  | 'differs'
  | 'not in the log'
  | 'unreadable'
  /** The projector does not bring the document up to date. */
  | 'parked';

type Found = { kind: DifferenceKind; detail: string };

type Compared = {
  store: Pick<EventStore, 'readStream' | 'readAll' | 'end'>;
  readModels: ComparedReadModels;
};

/** With more events after the checkpoint the projector is behind, and nothing is missing yet. */
const BEHIND_MAX = 1_000;

const SHOWN = ['merchantId', 'status', 'amount', 'revision'] as const;

const detailOf = (row: DocumentRow, inLog: DocumentRow): string => {
  const differing = SHOWN.filter((column) => row[column] !== inLog[column]);
  if (differing.length === 0) return 'the texts differ';
  return differing.map((name) => `${name} ${row[name]}, in the log ${inLog[name]}`).join('; ');
};

const differenceAt = (row: DocumentRow, events: RecordedEvent[]): Found | undefined => {
  const last = events.at(-1)?.revision ?? -1;
  const inLog = foldStream(events.slice(0, row.revision + 1), foldReadModel);
  if (row.revision > last || inLog === undefined)
    return {
      kind: 'not in the log',
      detail: `revision ${row.revision}, and the log ends at ${last}`,
    };
  const expected = rowOf(inLog);
  if (contentOf(expected) === contentOf(row)) return undefined;
  return { kind: 'differs', detail: detailOf(row, expected) };
};

/** A document that only lags is no difference. */
const differenceOf = async (
  { store, readModels }: Compared,
  paymentId: string,
): Promise<Found | undefined> => {
  // Reads of a file wait for nothing: no other work would get its turn.
  await turn();
  // Read first: every event before this checkpoint is then in the document that is read later.
  const checkpoint = await readModels.filledTo();
  const { row, whole, parked } = await readModels.inspect(paymentId);
  if (!whole) return { kind: 'damaged', detail: `revision ${row?.revision} without its check` };
  const events = await store.readStream(streamOf(paymentId)).catch(asUnreadable);
  if (events instanceof UnreadableStream)
    return row && !parked ? { kind: 'unreadable', detail: events.message } : undefined;
  const difference = row && differenceAt(row, events);
  if (difference !== undefined) return difference;
  const next = events[(row?.revision ?? -1) + 1];
  if (next === undefined || parked) return undefined;
  const after = await store.readAll(checkpoint, BEHIND_MAX);
  const isAfter = after.some((one) => one.stream === next.stream && one.revision <= next.revision);
  if (after.length === BEHIND_MAX || isAfter) return undefined;
  if (row === undefined) return { kind: 'missing', detail: 'no document' };
  return { kind: 'older', detail: `revision ${row.revision}, in the log ${events.length - 1}` };
};

const NAMED_MAX = 100;
const PAGE = 250;

export type ComparisonProgress = { done: number; total: number };

/** The payments that begin in each page of events, up to where the log ends now, and its share before there. */
async function* paymentPages({ end, readAll }: Compared['store']) {
  const until = await end();
  for (let last: Position | null = null; last !== until; ) {
    const events: LogEvent[] = await readAll(last, PAGE, until);
    if (events.length === 0) return;
    // A foreign event begins no payment, and a payment whose first event cannot be read is parked.
    const begun = events.filter((event) => event.revision === 0 && isReadable(event));
    last = events.at(-1)?.position ?? until;
    const ids = begun.flatMap(({ stream }) => paymentOf(stream) ?? []);
    yield { ids, share: positionAsNumber(last) / positionAsNumber(until) };
  }
}

const note = (found: Comparison, paymentId: string, difference: Found | undefined): void => {
  if (difference === undefined) return;
  const { kind } = difference;
  if (found.named.length < NAMED_MAX) found.named.push({ paymentId, ...difference });
  found.differences += 1;
  found.kinds[kind] = (found.kinds[kind] ?? 0) + 1;
};

async function* compareDocuments(
  compared: Compared,
  found: Comparison,
  signal: AbortSignal,
): AsyncGenerator<ComparisonProgress, void> {
  const { store, readModels } = compared;
  const compare = async (paymentIds: string[]): Promise<void> => {
    signal.throwIfAborted();
    const differences = await fewAtOnce(paymentIds, (id) => differenceOf(compared, id));
    for (const [at, id] of paymentIds.entries()) note(found, id, differences[at]);
  };
  let expected = 0;
  for await (const ids of documentPages(readModels, PAGE)) {
    signal.throwIfAborted();
    expected += ids.length;
  }
  const half = Math.max(expected, 1);
  const progress = (share = 0): ComparisonProgress => {
    const done = Math.min(found.documents, half) + Math.floor(share * half);
    return { done, total: 2 * half };
  };

  yield progress();
  for await (const ids of documentPages(readModels, PAGE)) {
    await compare(ids);
    found.documents += ids.length;
    yield progress();
  }
  for await (const { ids, share } of paymentPages(store)) {
    const stored = await fewAtOnce(ids, readModels.inspect);
    await compare(ids.filter((_, at) => stored[at]?.row === undefined));
    found.payments += ids.length;
    yield progress(share);
  }
  for await (const { paymentId, reason } of parkedPayments(readModels, PAGE)) {
    signal.throwIfAborted();
    const isNamed = (await differenceOf(compared, paymentId)) !== undefined;
    if (!isNamed) note(found, paymentId, { kind: 'parked', detail: reason });
  }
}

/** Also parked payments and a damaged index. Throws what the engines throw, and the signal's reason. */
export async function* compareAll(
  compared: Compared,
  signal: AbortSignal,
  indexesAlone = false,
): AsyncGenerator<ComparisonProgress, Comparison> {
  const found: Comparison = { documents: 0, payments: 0, kinds: {}, differences: 0, named: [] };
  if (!indexesAlone) yield* compareDocuments(compared, found, signal);
  const detail = await compared.readModels.indexDamage?.(signal);
  signal.throwIfAborted();
  if (detail !== undefined) note(found, WHOLE_FILE, { kind: 'unlisted', detail });
  return found;
}

type CompareArgs = ReadModelsFile & { indexesAlone: boolean };

export const compareFile: LogJob<CompareArgs, ComparisonProgress, Comparison> = async function* (
  store,
  { indexesAlone, ...file },
  { signal },
) {
  const readModels = openCompared(file);
  try {
    return yield* compareAll({ store, readModels }, signal, indexesAlone);
  } finally {
    await readModels.close();
  }
};
