/**
 * GET /api/v1/payments/{paymentId}: the stored document where it is known to be up to date, else
 * the fold of the stream; both give the same bytes at one revision (gaps §9).
 */

import {
  StoreUnavailable,
  StreamNotWhole,
  UnreadableStream,
} from '../shared/event-store/errors.ts';
import { foldInSlices, isUnreadableOf } from '../shared/event-store/fold-stream.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/payment-events.ts';
import { bodyOf, project } from '../shared/payment/response.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import type { PaymentDocument, ReadModelsReader } from '../shared/read-models/port.ts';

/** What the GET routes work with. */
export type QueryDeps = {
  store: EventStore;
  readModels: ReadModelsReader;
  behind: Behind;
};

/**
 * Called before the document is read: a check that began later could be about a newer document. The
 * function that it gives takes the document's revision; true where later events may be stored.
 */
export type Behind = (paymentId: string) => (revision: number) => boolean | Promise<boolean>;

/** Compares a document with the last revision of its stream: right whichever process appends (gaps §9). */
export const behindTheStream =
  (store: Pick<EventStore, 'lastRevision'>): Behind =>
  (paymentId) => {
    const last = store.lastRevision(streamOf(paymentId)).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) return undefined;
      throw error;
    });
    // A request that finds no document never awaits `last`: its rejection must not end the process.
    last.catch(() => undefined);
    // With the event store out of reach, the document is served as it is.
    return async (revision) => {
      const known = await last;
      return known !== undefined && known !== revision;
    };
  };

/** What GET responds with: the JSON text and the revision it stands for. */
export type FoundPayment = Pick<PaymentDocument, 'merchantId' | 'revision' | 'body'>;

/**
 * The merchant's payment as of now; undefined for another merchant's payment as for one that does not
 * exist. Throws StoreUnavailable when neither the read models nor the event store can be read,
 * UnreadableStream when a payment that has to be folded cannot be, and StreamNotWhole where the log no
 * longer has a payment that the read models know.
 */
export const getPayment = async (
  deps: QueryDeps,
  paymentId: string,
  merchantId: string,
): Promise<FoundPayment | undefined> => {
  const behind = deps.behind(paymentId);
  const document = await documentOf(deps, paymentId, merchantId);
  // seeded bug: document-fresh
  if (document !== undefined && !document.parked && !(await behind(document.revision))) {
    return document;
  }
  try {
    const found = await fold(deps, paymentId);
    // seeded bug: get-of-removed
    if (found === undefined && document !== undefined)
      throw new StreamNotWhole(`payment ${paymentId}: the read models have it, the log does not`);
    // seeded bug: get-of-merchant
    return found?.merchantId === merchantId ? found : undefined;
  } catch (error) {
    if (error instanceof StoreUnavailable && document !== undefined) return document;
    const isOwn = document !== undefined || !(error instanceof UnreadableStream);
    if (isOwn || isUnreadableOf(error, merchantId)) throw error;
    return undefined;
  }
};

const documentOf = async (
  { readModels }: QueryDeps,
  paymentId: string,
  merchantId: string,
): Promise<PaymentDocument | undefined> => {
  try {
    return await readModels.get(paymentId, merchantId);
  } catch (error) {
    if (error instanceof ReadModelsUnavailable) return undefined;
    throw error;
  }
};

const fold = async ({ store }: QueryDeps, paymentId: string): Promise<FoundPayment | undefined> => {
  const readModel = await foldInSlices(await store.readStream(streamOf(paymentId)), project);
  if (readModel === undefined) return undefined;
  return {
    merchantId: readModel.merchantId,
    revision: readModel.revision,
    body: bodyOf(readModel),
  };
};
