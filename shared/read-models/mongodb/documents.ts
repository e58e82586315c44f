/** The documents of the read models in MongoDB, and the filters that find them. */
import type { Position } from '../../event-store/port.ts';
import { READ_MODEL_VERSION } from '../../payment/fold.ts';
import type { PaymentReadModel } from '../../payment/state.ts';
import { type DocumentRow, type RowCheck, rowOf } from '../document-row.ts';
import { DocumentTooLarge } from '../errors.ts';
import type { Found } from '../pages.ts';
import type { Parking, PaymentSearch, ReadModelChange } from '../port.ts';

/** Names the form of the documents below; raise it with any change of them. */
const SCHEMA_VERSION = 4;
/** Begins every collection's name, so that another version fills other collections next to these. */
export const FORM = `read_models_${SCHEMA_VERSION * 10_000 + READ_MODEL_VERSION}`;

type LeftOut = 'merchantReference' | 'unresolvedSince' | 'unresolved';

/** `_id` is the payment id. The body is a text: a document of fields would not come back to the byte. */
export type StoredPayment = Omit<DocumentRow, 'paymentId' | LeftOut> &
  Partial<Record<LeftOut, string>> & {
    _id: string;
    /** The revision of the poison event that parked the payment; past once `revision` has reached it. */
    parkedAt?: number;
    /** Over all of the above but `parkedAt` (document-row.ts). */
    check: string;
  };

/** `_id` is the payment id, `revision` that of the poison event. */
export type StoredParking = { _id: string; revision: number; reason: string; since: string };

/** The served generation, a generation's checkpoint, or a lease. */
export type StoredControl = {
  _id: string;
  generation?: number;
  position?: Position | null;
  /** The log's at that position. */
  hash?: string | null;
  holder?: string;
  until?: Date;
};

/** Throws TypeError for any other value: an object would be read as a part of a query. */
export const storedText = (value: unknown): string => {
  if (typeof value !== 'string') throw new TypeError('the read models take texts only');
  return value;
};

export const storedOf = (readModel: PaymentReadModel, rowCheck: RowCheck): StoredPayment => {
  const row = rowOf(readModel);
  const { paymentId, merchantId, merchantReference, unresolvedSince, unresolved, ...rest } = row;
  return {
    _id: storedText(paymentId),
    merchantId: storedText(merchantId),
    ...rest,
    ...(merchantReference === null ? {} : { merchantReference }),
    ...(unresolvedSince === null ? {} : { unresolvedSince }),
    ...(unresolved === null ? {} : { unresolved }),
    check: rowCheck.of(row),
  };
};

/** The form that the check covers. */
export const rowIn = ({ _id, check: _, parkedAt: __, ...stored }: StoredPayment): DocumentRow => ({
  merchantReference: null,
  unresolvedSince: null,
  unresolved: null,
  ...stored,
  paymentId: _id,
});

export const isWhole = (stored: StoredPayment, rowCheck: RowCheck): boolean =>
  typeof stored.body === 'string' && rowCheck.holds(rowIn(stored), stored.check);

export const isParked = ({ parkedAt = -1, revision }: StoredPayment): boolean =>
  parkedAt > revision;

export const foundOf = (stored: StoredPayment, rowCheck: RowCheck): Found => {
  const { _id, merchantId, revision, createdAt, body } = stored;
  const parked = isParked(stored);
  const found = { paymentId: _id, merchantId, revision, body, parked, createdAt };
  return isWhole(stored, rowCheck) ? found : { ...found, damaged: true };
};

/** One document of each payment at most, its highest revision. */
export type Batch = ReturnType<typeof batchOf>;

/** MongoDB takes 16 MB; the rest of a document is far below one. */
const BODY_BYTES_MAX = 15 * 1024 * 1024;

/** Throws, before anything is written, TypeError for an id that is no text and DocumentTooLarge. */
export const batchOf = (changes: ReadModelChange[], rowCheck: RowCheck) => {
  const readModels = new Map<string, { readModel: PaymentReadModel; stored: StoredPayment }>();
  const parkings = new Map<string, Parking>();
  const unparked: string[] = [];
  for (const change of changes) {
    if (change.kind === 'unpark') unparked.push(storedText(change.paymentId));
    else if (change.kind === 'park') parkings.set(storedText(change.paymentId), change);
    else {
      const stored = storedOf(change.readModel, rowCheck);
      const { _id, body, revision } = stored;
      const bytes = Buffer.byteLength(body);
      if (bytes > BODY_BYTES_MAX) throw new DocumentTooLarge(_id, bytes);
      const before = readModels.get(_id)?.stored.revision ?? -1;
      if (before < revision) readModels.set(_id, { readModel: change.readModel, stored });
    }
  }
  const ids = [...new Set([...readModels.keys(), ...parkings.keys()])];
  return { readModels, parkings, unparked, ids };
};

const given = <T>(value: T | undefined, filter: (value: T) => object): object[] =>
  value === undefined ? [] : [filter(value)];

const EQUAL = ['merchantId', 'merchantReference', 'status'] as const;

/** One filter for each meaning of the searched text: each has its own index. */
export const filtersOf = (search: PaymentSearch): { $and: object[] }[] => {
  const all = [
    ...EQUAL.flatMap((field) => given(search[field], (text) => ({ [field]: storedText(text) }))),
    ...given(search.from, (from) => ({ createdAt: { $gte: storedText(from) } })),
    ...given(search.to, (to) => ({ createdAt: { $lt: storedText(to) } })),
    ...given(search.minAmount, (amount) => ({ amount: { $gte: Number(amount) } })),
    ...given(search.maxAmount, (amount) => ({ amount: { $lte: Number(amount) } })),
    ...given(search.after, ({ createdAt, paymentId }) => ({
      $or: [
        { createdAt: { $lt: storedText(createdAt) } },
        { createdAt: storedText(createdAt), _id: { $lt: storedText(paymentId) } },
      ],
    })),
  ];
  const meanings =
    search.text === undefined
      ? [{}]
      : ['_id', 'merchantReference', 'last4'].map((field) => ({
          [field]: storedText(search.text),
        }));
  return meanings.map((meaning) => ({ $and: [meaning, ...all] }));
};
