/** The first event names the merchant; if changed or deleted, the read models do, and the merchant sees it. */
import { formsLeft, hashOf } from '../shared/event-store/chain.ts';
import { decode } from '../shared/event-store/codec.ts';
import type { EventStore, LogEvent, StoredForm } from '../shared/event-store/port.ts';
import { paymentOf } from '../shared/payment/events.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';

const STREAMS_KNOWN_MAX = 50_000;

const merchantIn = (event: LogEvent): string | undefined =>
  'event' in event && event.event.type === 'PaymentCreated'
    ? event.event.data.merchantId
    : undefined;

const merchantInForm = (form: StoredForm): string | undefined =>
  hashOf(form.text) === form.hash ? merchantIn(decode(form)) : undefined;

export type MerchantDocuments = Pick<ReadModelsReader, 'getAny'>;

/** By the error's code: a job asks another thread, on the way from which an error loses its class. */
const documentIn = ({ getAny }: MerchantDocuments, paymentId: string) =>
  getAny(paymentId).catch((error: unknown) => {
    if (Object(error).code !== 'READ_MODELS_UNAVAILABLE') throw error;
    return undefined;
  });

export const createMerchantLookup = (
  store: Pick<EventStore, 'stored'>,
  readModels: MerchantDocuments,
) => {
  const known = createBoundedMap<string>(STREAMS_KNOWN_MAX);

  const keep = (stream: string, merchantId: string | undefined): string | undefined => {
    if (merchantId === undefined) known.delete(stream);
    else known.set(stream, merchantId);
    return merchantId;
  };

  const lookUp = async (stream: string): Promise<string | undefined> => {
    const [first] = await formsLeft(store.stored, stream);
    return first === undefined ? undefined : merchantInForm(first);
  };

  const fromReadModels = async (paymentId: string) =>
    (await documentIn(readModels, paymentId))?.merchantId;

  const merchantOf = async (
    { stream, revision }: Pick<StoredForm, 'stream' | 'revision'>,
    here: () => string | undefined,
  ): Promise<string | undefined> => {
    const paymentId = paymentOf(stream);
    if (paymentId === undefined) return undefined;
    if (revision === 0) return keep(stream, here() ?? (await fromReadModels(paymentId)));
    const merchantId =
      known.get(stream) ?? (await lookUp(stream)) ?? (await fromReadModels(paymentId));
    return keep(stream, merchantId);
  };

  return {
    /** Undefined for an event of no payment, or of one whose first event cannot be read. */
    of: (event: LogEvent) => merchantOf(event, () => merchantIn(event)),
    ofForm: (form: StoredForm) => merchantOf(form, () => merchantInForm(form)),
  };
};
export type MerchantLookup = ReturnType<typeof createMerchantLookup>;
