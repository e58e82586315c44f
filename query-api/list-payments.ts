/** GET /api/v1/payments: the merchant's payments, newest first (docs/interface.md, "List payments"). */
import { z } from 'zod';
import type { EventStore } from '../shared/event-store/port.ts';
import { cursorOf, placeAfter } from '../shared/http/cursor.ts';
import { asNumber, moment, optionalText } from '../shared/http/fields.ts';
import { PaymentStatus } from '../shared/http/payment-schemas.ts';
import { foldDamaged } from '../shared/read-models/fold-damaged.ts';
import type { PaymentDocument, ReadModelsReader } from '../shared/read-models/port.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

const LIMIT_WORDING = `must be an integer from 1 to ${LIMIT_MAX}`;
const LIMIT_PATTERN = /^([1-9][0-9]?|100)$/;

const NAMES = ['status', 'from', 'to', 'merchantReference', 'limit', 'cursor'] as const;

/** Unknown parameters are rejected: without a misspelt filter the list would hold too much. */
export const ListParameters = z.strictObject(
  {
    status: PaymentStatus.optional().describe('Only payments in this state.'),
    from: moment().describe('Created at this time or later.'),
    to: moment().describe('Created before this time.'),
    merchantReference: optionalText()
      .refine((value) => value !== '', 'must not be empty')
      .meta({ minLength: 1, description: 'Only payments with exactly this reference.' }),
    limit: optionalText()
      .refine((value) => value === undefined || LIMIT_PATTERN.test(value), LIMIT_WORDING)
      .meta({ ...asNumber(1, LIMIT_MAX), default: LIMIT_DEFAULT, description: 'How many at most.' })
      .transform((value) => Number(value ?? LIMIT_DEFAULT)),
    cursor: optionalText()
      .transform((value) => (value === undefined ? undefined : (placeAfter(value) ?? null)))
      .refine((place) => place !== null, 'must be the nextCursor of an earlier answer')
      .meta({ minLength: 1, description: 'The `nextCursor` of the page before.' }),
  } satisfies Record<(typeof NAMES)[number], z.ZodType>,
  {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? `the parameters are ${NAMES.join(', ')}` : undefined,
  },
);

type ListRequest = z.output<typeof ListParameters>;

/** `bodyOf` gives the text of a parked payment. Throws ReadModelsUnavailable and StoreUnavailable. */
export const listPayments = async (
  {
    readModels,
    store,
  }: { readModels: Pick<ReadModelsReader, 'search'>; store: Pick<EventStore, 'readStream'> },
  merchantId: string,
  request: ListRequest,
  bodyOf: (document: PaymentDocument) => Promise<string>,
): Promise<string> => {
  const { limit, status, from, to, merchantReference, cursor } = request;
  const after = cursor ?? undefined;
  const search = { status, from, to, merchantReference, after, merchantId };
  const { documents, searchedTo } = await readModels.search(search, limit);
  const page = await foldDamaged(store, search, documents);
  const bodies = await Promise.all(page.map((one) => (one.parked ? bodyOf(one) : one.body)));
  const next = searchedTo === undefined ? '' : `,"nextCursor":"${cursorOf(searchedTo)}"`;
  return `{"payments":[${bodies.join(',')}]${next}}`;
};
