/**
 * Streams that the store lost wholly or in part. A deleted or cut stream leaves no event in the log: its server
 * announces it, the projector has parked it, and the read models have its document (docs/audit.md).
 */
import {
  StoreFileUnusable,
  StreamNotWhole,
  UnreadableStream,
} from '../shared/event-store/errors.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/events.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import { documentPages, parkedPayments } from '../shared/read-models/pages.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { onError } from '../shared/runtime/error-text.ts';
import { fewAtOnce } from '../shared/runtime/scheduling.ts';
import type { LogBreak } from './breaks.ts';

/** How many payments the read models name. */
const NAMED_MAX = 100;
const REMOVED_MAX = 10_000;
const PAGE = 250;

export type RemovalDeps = {
  store: Pick<EventStore, 'readStream' | 'lastRevision' | 'subscribe' | 'stored'>;
  readModels: Pick<ReadModelsReader, 'idsAfter' | 'inspect' | 'parked'>;
};

/** `missing`: the first 100 payments of which the log holds less than the document, if known. */
export type RemovedStreams = {
  breaks: LogBreak[];
  missing?: string[];
};

/** Undefined where the store holds the stream from its first event up to `known`. */
const whyNotWhole = async (
  { store }: Pick<RemovalDeps, 'store'>,
  stream: string,
  known: number,
): Promise<string | undefined> => {
  try {
    const events = await store.readStream(stream);
    // Throws for a stream that was deleted, which may read like one that never was.
    const last = events.at(-1)?.revision ?? (await store.lastRevision(stream)) ?? -1;
    return last < known ? notHeld(known, last) : undefined;
  } catch (error) {
    if (error instanceof StreamNotWhole) return error.why;
    // An event that cannot be read is there, and the verification of the log looks at it.
    if (error instanceof UnreadableStream) return undefined;
    throw error;
  }
};

const notHeld = (known: number, last: number): string =>
  last < 0
    ? 'the log does not hold it, and the read models know it'
    : `the log holds it up to revision ${last}, and the read models know it up to ${known}`;

/** Streams that the server has announced as deleted or cut, or whose metadata were set. */
async function* announced(
  { store }: Pick<RemovalDeps, 'store'>,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const leaving = new AbortController();
  try {
    const until = AbortSignal.any([signal, leaving.signal]);
    for await (const item of store.subscribe(null, until, [])) {
      if (item.kind === 'caught-up') return;
      if (item.kind === 'removal') yield item.stream;
    }
  } finally {
    leaving.abort();
  }
}

async function* eachMissing({ store, readModels }: RemovalDeps, signal: AbortSignal) {
  for await (const ids of documentPages(readModels, PAGE)) {
    if (signal.aborted) return;
    const found = await fewAtOnce(ids, async (paymentId) => {
      const { row } = await readModels.inspect(paymentId);
      const stream = streamOf(paymentId);
      let removed: string | undefined;
      const last = await store.lastRevision(stream).catch((error: unknown) => {
        if (!(error instanceof StreamNotWhole || error instanceof StoreFileUnusable)) throw error;
        removed = error instanceof StreamNotWhole ? error.why : error.message;
        return null;
      });
      const isMissing = row !== undefined && row.revision > (last ?? -1);
      return isMissing ? [{ paymentId, reason: removed ?? notHeld(row.revision, last ?? -1) }] : [];
    });
    yield* found.flat();
  }
}

/**
 * Of a store without a chain over the log, looks up the streams that its server announces, the parked
 * payments and the documents; the first alone where the read models are out of reach. Of another store only
 * what is missing: its chain shows the break. Throws StoreUnavailable.
 */
export const removedStreams = async (
  deps: RemovalDeps,
  signal: AbortSignal,
): Promise<RemovedStreams> => {
  const breaks = new Map<string, LogBreak>();
  const missing: string[] = [];
  const isChained = deps.store.stored.guarantee === 'log';
  const note = (stream: string, reason: string): boolean => {
    if (!breaks.has(stream)) breaks.set(stream, { position: '', stream, revision: 0, reason });
    return breaks.size < REMOVED_MAX;
  };
  const look = async (stream: string, known: number): Promise<void> => {
    if (breaks.has(stream) || breaks.size >= REMOVED_MAX) return;
    const reason = await whyNotWhole(deps, stream, known);
    if (reason !== undefined) note(stream, reason);
  };
  if (!isChained) for await (const stream of announced(deps, signal)) await look(stream, -1);
  const lookUpKnown = async (): Promise<void> => {
    // The log held the revision before the parked one.
    const parked = isChained ? [] : parkedPayments(deps.readModels, PAGE);
    for await (const { paymentId, revision } of parked)
      await look(streamOf(paymentId), Math.max(revision - 1, 0));
    for await (const { paymentId, reason } of eachMissing(deps, signal)) {
      if (missing.length < NAMED_MAX) missing.push(paymentId);
      if (isChained ? missing.length === NAMED_MAX : !note(streamOf(paymentId), reason)) return;
    }
  };
  return lookUpKnown().then(
    () => ({ breaks: [...breaks.values()], missing }),
    onError(ReadModelsUnavailable, () => ({ breaks: [...breaks.values()] })),
  );
};
