/**
 * Compares all read models with the log: each document with its stream, then each payment of the log
 * with the documents, so that a missing one is found as well, and each index of the documents with
 * them; and names those that are parked. Changes nothing.
 */
import { isReadable } from '../shared/event-store/codec.ts';
import type { EventStore, Position } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/payment-events.ts';
import type { ParkedPayment, ReadModels } from '../shared/read-models/port.ts';
import { fewAtOnce } from '../shared/runtime/few-at-once.ts';
import { comparePayment, type Difference, type DifferenceKind } from './compare-payment.ts';

/** How many differences are named. */
const NAMED_MAX = 100;
const PAGE = 250;
/** Stands for the payment where a whole index differs. */
const NO_PAYMENT = '-';

/** Documents and payments of the log that were compared, and about how many there are of both. */
export type ComparisonProgress = { done: number; total: number };

export type Comparison = {
  documents: number;
  /** Payments that the log has. */
  payments: number;
  /** How many payments differ, by kind; only kinds that were found. */
  kinds: Partial<Record<DifferenceKind, number>>;
  differences: number;
  /** The first 100 of them. */
  named: Difference[];
};

export type CompareAllOptions = {
  store: Pick<EventStore, 'readStream' | 'readAll' | 'end'>;
  readModels: Pick<ReadModels, 'checkpoint' | 'inspect' | 'idsAfter' | 'parked' | 'indexDamage'>;
  onProgress?: ((progress: ComparisonProgress) => void) | undefined;
  signal?: AbortSignal;
};

type Step = (paymentIds: string[]) => Promise<void>;

/** Calls `step` with the payments of all documents, page by page. */
const eachDocument = async ({ readModels, signal }: CompareAllOptions, step: Step) => {
  for (let last: string | null = null; ; ) {
    signal?.throwIfAborted();
    const ids: string[] = await readModels.idsAfter(last, PAGE);
    await step(ids);
    last = ids.at(-1) ?? null;
    if (ids.length < PAGE) return;
  }
};

/** Calls `step` with the payments that begin in each page of the log, up to its end at the start. */
const eachInLog = async (
  { store, signal }: CompareAllOptions,
  end: Position | null,
  step: Step,
) => {
  for (let last: Position | null = null; last !== end; ) {
    signal?.throwIfAborted();
    const events = await store.readAll(last, PAGE, end);
    if (events.length === 0) return;
    // What somebody else wrote begins no payment, and a payment whose first event cannot be read is parked.
    const begun = events.filter((event) => event.revision === 0 && isReadable(event));
    await step(begun.flatMap(({ stream }) => paymentOf(stream) ?? []));
    last = events.at(-1)?.position ?? end;
  }
};

/** Calls `step` with all parked payments, page by page. */
const eachParked = async (
  { readModels, signal }: CompareAllOptions,
  step: (parked: ParkedPayment[]) => Promise<void>,
) => {
  let page = await readModels.parked(PAGE);
  while (page.length > 0) {
    signal?.throwIfAborted();
    await step(page);
    page = await readModels.parked(PAGE, page.at(-1));
  }
};

/**
 * The result of comparing everything. Throws StoreUnavailable, ReadModelsUnavailable, and the signal's
 * reason.
 */
export const compareAll = async (options: CompareAllOptions): Promise<Comparison> => {
  const { store, readModels, onProgress } = options;
  const end = await store.end();
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
  await eachDocument(options, async (ids) => {
    expected += ids.length;
  });
  const report = (): void => {
    const done = found.documents + found.payments;
    // Every payment has a document, and begins in the log: both are met once.
    onProgress?.({ done, total: Math.max(done, 2 * expected) });
  };

  report();
  await eachDocument(options, async (ids) => {
    await compare(ids);
    found.documents += ids.length;
    report();
  });
  await eachInLog(options, end, async (ids) => {
    const stored = await fewAtOnce(ids, readModels.inspect);
    await compare(ids.filter((_, at) => stored[at]?.row === undefined));
    found.payments += ids.length;
    report();
  });
  await eachParked(options, async (parked) => {
    for (const { paymentId, reason } of parked) {
      const isNamed = (await comparePayment(options, paymentId)) !== undefined;
      if (!isNamed) note({ paymentId, kind: 'parked', detail: reason });
    }
  });
  const detail = await readModels.indexDamage?.(options.signal);
  if (detail !== undefined) note({ paymentId: NO_PAYMENT, kind: 'unlisted', detail });
  return found;
};
