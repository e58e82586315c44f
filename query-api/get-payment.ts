/** GET of a payment: its document where it is known to be up to date, else the fold of the stream (gaps §9). */
import type { Bodies } from '../personal-data/opener.ts';
import {
  StoreUnavailable,
  StreamNotWhole,
  UnreadableStream,
} from '../shared/event-store/errors.ts';
import { foldInSlices, isUnreadableOf } from '../shared/event-store/fold-stream.ts';
import type { EventStore } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/events.ts';
import { project } from '../shared/payment/fold.ts';
import { keptBodyOf } from '../shared/payment/response.ts';
import type { OpenText } from '../shared/payment/state.ts';
import { ReadModelsUnavailable } from '../shared/read-models/errors.ts';
import type { PaymentDocument, ReadModelsReader } from '../shared/read-models/port.ts';
import { onError } from '../shared/runtime/error-text.ts';

/** Called before a read: whether the document may be old, or its stream's end. Throws as `lastRevision`. */
type Behind = (paymentId: string) => boolean | Promise<number | null>;

export const behindTheStream =
  (store: Pick<EventStore, 'lastRevision'>): Behind =>
  (paymentId) => {
    const last = store.lastRevision(streamOf(paymentId));
    // A request without a document never awaits `last`, whose rejection must not end the process.
    last.catch(() => undefined);
    return last;
  };

export type QueryDeps = {
  store: EventStore;
  readModels: ReadModelsReader;
  behind: Behind;
  openText: OpenText;
  bodies: Pick<Bodies, 'bodyOf'>;
};

type FoundPayment = Omit<PaymentDocument, 'parked' | 'damaged'>;

/** Throws StoreUnavailable, UnreadableStream; StreamNotWhole where the log lost what is known. */
export const getPayment = async (
  deps: QueryDeps,
  paymentId: string,
  merchantId: string,
): Promise<FoundPayment | undefined> => {
  const behind = deps.behind(paymentId);
  const document = await deps.readModels.get(paymentId, merchantId).catch(unavailable);
  try {
    if (document !== undefined && !document.parked) {
      const isOld = typeof behind === 'boolean' ? behind : (await behind) !== document.revision;
      if (!isOld) return document;
    }
    const found = await fold(deps, paymentId);
    if (found === undefined && document !== undefined)
      throw new StreamNotWhole(`payment ${paymentId}`, 'the read models have it, the log does not');
    return found?.merchantId === merchantId ? found : undefined;
  } catch (error) {
    // With the event store out of reach the document is served as it is.
    if (error instanceof StoreUnavailable && document !== undefined) return document;
    const isOwn = document !== undefined || !(error instanceof UnreadableStream);
    if (isOwn || isUnreadableOf(error, merchantId)) throw error;
    return undefined;
  }
};

const unavailable = onError(ReadModelsUnavailable, () => undefined);

const fold = async ({ store }: QueryDeps, paymentId: string): Promise<FoundPayment | undefined> => {
  const readModel = await foldInSlices(await store.readStream(streamOf(paymentId)), project);
  if (readModel === undefined) return undefined;
  const { merchantId, revision } = readModel;
  return { paymentId, merchantId, revision, body: keptBodyOf(readModel) };
};
