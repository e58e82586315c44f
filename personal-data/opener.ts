/** Opens boxes at the edge: the processes that answer merchants and auditors, and the one that sends webhooks. */
import type { EventStore } from '../shared/event-store/port.ts';
import { streamOf } from '../shared/payment/events.ts';
import { bodyOf } from '../shared/payment/response.ts';
import { type OpenText, openPersonal, type PaymentReadModel } from '../shared/payment/state.ts';
import type { PaymentDocument } from '../shared/read-models/port.ts';
import { createBoundedMap } from '../shared/runtime/bounded-map.ts';
import type { Logger } from '../shared/runtime/log.ts';
import { BoxRefused, openBox } from './box.ts';
import type { KeyStore } from './port.ts';

type OpenerDeps = {
  keys: Pick<KeyStore, 'read'>;
  store: Pick<EventStore, 'readStream'>;
  logger: Pick<Logger, 'error'>;
};

const MISSING_MAX = 1_000;

export const createOpener = ({ keys, store, logger }: OpenerDeps) => {
  const missing = new Set<string>();

  const erasedAt = async (stream: string): Promise<string | undefined> => {
    const events = await store.readStream(stream).catch(() => []);
    return events.find(({ event }) => event.type === 'PaymentPersonalDataErased')?.time;
  };

  const openText: OpenText = async (stored, { paymentId, type: eventType, field }) => {
    const { box = '', key = '', clear } = stored;
    if (stored.erasedAt !== undefined) return { erased: true, erasedAt: stored.erasedAt };
    if (clear !== undefined) return { text: clear };
    const stream = streamOf(paymentId);
    try {
      const found = (await keys.read([key])).get(key);
      missing.delete(paymentId);
      if (found === 'erased') return { erased: true, erasedAt: await erasedAt(stream) };
      if (typeof found !== 'object') throw new BoxRefused('FOREIGN_KEY', `its key is ${found}`);
      const text = openBox(found, { stream, eventType, field }, { box, key });
      return { text: text as NonNullable<typeof clear> };
    } catch (error) {
      // With the store of keys away none is missing; and money never fails for a name.
      if (error instanceof BoxRefused && missing.size < MISSING_MAX) missing.add(paymentId);
      logger.error({ paymentId, err: error }, 'personal data of a payment cannot be opened');
      return { unavailable: true };
    }
  };

  /** `missing`: payments of a box that was met and that its key does not open, though nothing was erased. */
  return { openText, bodies: createBodies(openText), missing: missing as ReadonlySet<string> };
};
export type Opener = ReturnType<typeof createOpener>;

/** Some 9 MB of ordinary payments; to open one costs as much as a GET. */
const BODIES_MAX = 4096;
const BODIES_BYTES_MAX = 16 * 1024 * 1024;
const KEPT_MS = 60_000;

type KeptBody = { revision: number; body: string };

/** Bodies as they are shown, kept by their revision: an erasure raises it, so none is of an erased payment. */
export const createBodies = (openText: OpenText) => {
  const bytes = { bytesMax: BODIES_BYTES_MAX, bytesOf: ({ body }: KeptBody) => body.length + 250 };
  const bodies = createBoundedMap<KeptBody>(BODIES_MAX, bytes);
  // One that no request asks for again would stay, also once its payment is erased.
  setInterval(() => bodies.clear(), KEPT_MS).unref();

  const keptAt = ({ paymentId, revision }: Pick<PaymentDocument, 'paymentId' | 'revision'>) => {
    const known = bodies.get(paymentId);
    return known?.revision === revision ? known.body : undefined;
  };

  const shown = async (payment: PaymentReadModel, revision = payment.revision): Promise<string> => {
    const opened = await openPersonal(openText, payment);
    const body = bodyOf(payment, opened);
    // A GET never shows the address that the answer to a create has.
    if (!('unavailable' in opened) && payment.nextAction?.url === undefined)
      bodies.set(payment.paymentId, { revision, body });
    return body;
  };

  return {
    shown,
    /** The document then has what is shown in place of the box, for as long as the read models keep it. */
    bodyOf: async (document: Omit<PaymentDocument, 'merchantId' | 'parked'>): Promise<string> => {
      if (document.isOpened) return document.body;
      const { body: sealed, revision } = document;
      const body = keptAt(document) ?? (await shown(JSON.parse(sealed), revision));
      if (body === keptAt(document)) Object.assign(document, { body, isOpened: true });
      return body;
    },
  };
};
export type Bodies = ReturnType<typeof createBodies>;
