/**
 * GET /api/v1/payments: the merchant's own payments, newest first. An addition to the contract
 * (docs/interface.md, "List payments"). The bodies are the stored texts, put together as they are.
 */
import { z } from 'zod';
import { cursorOf, type Place, placeOf } from '../shared/http/cursor.ts';
import { moment, optionalChoice, optionalText } from '../shared/http/fields.ts';
import { PaymentStatus } from '../shared/http/responses.ts';
import type {
  PaymentDocument,
  PaymentSearch,
  ReadModelsReader,
} from '../shared/read-models/port.ts';

const LIMIT_DEFAULT = 20;
const LIMIT_MAX = 100;

const LIMIT = `must be an integer from 1 to ${LIMIT_MAX}`;
const LIMIT_TEXT = /^([1-9][0-9]?|100)$/;

/** A name that is there twice comes as an array, and is no string. */
const ListParameters = z.strictObject({
  status: optionalChoice(PaymentStatus.options),
  from: moment(),
  to: moment(),
  merchantReference: optionalText().refine((value) => value !== '', 'must not be empty'),
  limit: optionalText()
    .refine((value) => value === undefined || LIMIT_TEXT.test(value), LIMIT)
    .transform((value) => Number(value ?? LIMIT_DEFAULT)),
  cursor: optionalText()
    .transform((value) => (value === undefined ? undefined : (placeOf(value) ?? null)))
    .refine((place) => place !== null, 'must be the nextCursor of an earlier answer'),
});

const KNOWN = Object.keys(ListParameters.shape).join(', ');

const detailOf = ({ code, path, message }: z.core.$ZodIssue): string =>
  code === 'unrecognized_keys' ? `the parameters are ${KNOWN}` : `${path.join('.')} ${message}`;

export type ListRequest = { search: Omit<PaymentSearch, 'merchantId'>; limit: number };

/** Reads the parameters of a list; a name that is not known is refused, lest a filter go unnoticed. */
export const parseList = (
  query: unknown,
): { ok: true; request: ListRequest } | { ok: false; details: string[] } => {
  const read = ListParameters.safeParse(query);
  if (!read.success) return { ok: false, details: [...new Set(read.error.issues.map(detailOf))] };
  const { limit, status, from, to, merchantReference, cursor } = read.data;
  const search = {
    ...(status !== undefined && { status }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(merchantReference !== undefined && { merchantReference }),
    ...(cursor !== undefined && cursor !== null && { after: cursor }),
  };
  return { ok: true, request: { search, limit } };
};

const placeOfDocument = ({ paymentId, body }: PaymentDocument): Place => {
  const { createdAt } = JSON.parse(body) as { createdAt: string };
  return { createdAt, paymentId };
};

/**
 * The JSON text of one page. `bodyOf` gives the text of a payment whose document has stopped.
 * Throws ReadModelsUnavailable.
 */
export const listPayments = async (
  readModels: Pick<ReadModelsReader, 'search'>,
  merchantId: string,
  { limit, search }: ListRequest,
  bodyOf: (document: PaymentDocument) => Promise<string>,
): Promise<string> => {
  // One more than is shown tells whether there are more.
  // seeded bug: list-of-merchant
  const found = await readModels.search({ ...search, merchantId }, limit + 1);
  const page = found.slice(0, limit);
  const bodies = await Promise.all(page.map((one) => (one.parked ? bodyOf(one) : one.body)));
  const last = found.length > limit ? page.at(-1) : undefined;
  const next = last === undefined ? '' : `,"nextCursor":"${cursorOf(placeOfDocument(last))}"`;
  return `{"payments":[${bodies.join(',')}]${next}}`;
};
