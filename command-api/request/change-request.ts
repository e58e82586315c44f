/** The bodies of capture and refund (gaps §3). */
import type { z } from 'zod';
import { object, optionalPositiveInteger, optionalText } from '../../shared/http/fields.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';
import {
  BODY_NOT_OBJECT,
  detailsOf,
  type Invalid,
  invalid,
  isObject,
  type JsonObject,
  requestedAmount,
  textsOf,
} from './json.ts';

const changeFields = { amount: optionalPositiveInteger(), reason: optionalText() };

/**
 * In JSON Schema: without an amount only the reason may be given. With `anyOf` at the top,
 * generators of clients would lose the fields beside it.
 */
const amountOrReason = (name: AmountName) => ({
  if: { propertyNames: { const: 'reason' } },
  else: { anyOf: [{ required: [name] }, { required: ['amount'] }] },
});

export const CaptureRequest = object({
  captureAmount: optionalPositiveInteger(),
  ...changeFields,
}).meta({ id: 'CaptureRequest', ...amountOrReason('captureAmount') });

export const RefundRequest = object({
  refundAmount: optionalPositiveInteger(),
  ...changeFields,
}).meta({ id: 'RefundRequest', ...amountOrReason('refundAmount') });

export type ChangeRequest = {
  amountMinor: RequestedAmount | undefined;
  reason?: string | undefined;
};

type AmountName = 'captureAmount' | 'refundAmount';
export type ParsedChange =
  | { ok: true; request: ChangeRequest /** For `textsHoldCard`. */; texts: string[] }
  | Invalid;

type ChangeFields = { amount?: number | undefined; reason?: string | undefined } & Partial<
  Record<AmountName, number | undefined>
>;

const togetherDetails = (name: AmountName, body: JsonObject, fields: ChangeFields): string[] => {
  const { [name]: named, amount } = fields;
  if (named !== undefined && amount !== undefined && named !== amount) {
    return [`amount must be equal to ${name}`];
  }
  // A mistyped name must never move the full sum.
  const mayBeMistyped = Object.keys(body).some((key) => key !== 'reason');
  return named === undefined && amount === undefined && mayBeMistyped
    ? [`${name} is required beside other fields`]
    : [];
};

const parserOf =
  (schema: z.ZodType<ChangeFields>, name: AmountName) =>
  (value: unknown): ParsedChange => {
    if (value === undefined) return { ok: true, request: { amountMinor: undefined }, texts: [] };
    if (!isObject(value)) return invalid(BODY_NOT_OBJECT);
    // Beside the reason no null is absent: an amount that is there as null is rejected.
    const { reason: given, ...rest } = value;
    const read = schema.safeParse(given === null ? rest : value);
    if (!read.success) return invalid(...detailsOf(read.error.issues));
    const details = togetherDetails(name, value, read.data);
    if (details.length > 0) return invalid(...details);
    const { [name]: named, amount = named, reason } = read.data;
    return {
      ok: true,
      request: {
        amountMinor: amount === undefined ? undefined : requestedAmount(amount),
        ...(reason && { reason }),
      },
      texts: textsOf(value),
    };
  };

export const parseCapture = parserOf(CaptureRequest, 'captureAmount');
export const parseRefund = parserOf(RefundRequest, 'refundAmount');
