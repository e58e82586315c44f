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
import type { Behind } from './behind.ts';

/** What the GET routes work with. */
export type QueryDeps = {
  store: EventStore;
  readModels: ReadModelsReader;
  behind: Behind;
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
  const behind = await deps.behind(paymentId);
  const document = await documentOf(deps, paymentId, merchantId);
  if (document !== undefined && !document.parked && !(await behind(document.revision))) {
    return document;
  }
  try {
    const found = await fold(deps, paymentId);
    if (found === undefined && document !== undefined)
      throw new StreamNotWhole(`payment ${paymentId}: the read models have it, the log does not`);
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
