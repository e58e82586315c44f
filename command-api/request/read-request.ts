/** Reads a capture, void or refund: key, JSON and fields (gaps §1, §3). */
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { object, optionalPositiveInteger, requestFields } from '../../shared/http/fields.ts';
import {
  BODY_NOT_OBJECT,
  type Invalid,
  invalid,
  isObject,
  type JsonObject,
  notJson,
  parseIdempotencyKey,
  type Read,
  takeText,
} from '../../shared/http/request.ts';
import type { RequestedAmount } from '../../shared/payment/commands.ts';
import { reason } from '../../shared/payment/fields.ts';
import { parseText } from '../../shared/runtime/json.ts';
import { textsOf } from './card-texts.ts';
import { AMOUNTS, detailsOf, givenTwice } from './json.ts';
import { requestedAmount } from './payment-request.ts';

const otherNameOf = (name: AmountName) => ({
  amount: optionalPositiveInteger(
    `Another name of \`${name}\`; if both are given, they are equal.`,
  ),
  ...requestFields({ reason }),
});

export const CaptureRequest = object({
  captureAmount: optionalPositiveInteger(
    'In minor units, at most the authorized amount; left out, all of it. The rest is released.',
  ),
  ...otherNameOf('captureAmount'),
}).meta({ id: 'CaptureRequest' });

export const RefundRequest = object({
  refundAmount: optionalPositiveInteger(
    'In minor units, at most what is left to refund; left out, all of it.',
  ),
  ...otherNameOf('refundAmount'),
}).meta({ id: 'RefundRequest' });

type ChangeRequest = {
  amount: RequestedAmount | undefined;
  reason?: string | undefined;
};

type AmountName = 'captureAmount' | 'refundAmount';
type ParsedChange =
  | { ok: true; request: ChangeRequest /** For `runsHoldCard`. */; texts: string[] }
  | Invalid;

type ChangeFields = { amount?: number | undefined; reason?: string | undefined } & Partial<
  Record<AmountName, number | undefined>
>;

const togetherDetails = (name: AmountName, body: JsonObject, fields: ChangeFields): string[] => {
  const { [name]: named, amount } = fields;
  if (named !== undefined && amount !== undefined && named !== amount)
    return [`amount must be equal to ${name}`];
  // A mistyped name must never move the full sum.
  const mayBeMistyped = Object.keys(body).some((key) => key !== 'reason');
  return named === undefined && amount === undefined && mayBeMistyped
    ? [`${name} is required beside other fields`]
    : [];
};

const parserOf =
  (schema: z.ZodType<ChangeFields>, name: AmountName) =>
  (value: unknown, repeated: readonly string[] = []): ParsedChange => {
    if (value === undefined) return { ok: true, request: { amount: undefined }, texts: [] };
    if (!isObject(value)) return invalid(BODY_NOT_OBJECT);
    const twice = givenTwice(value, repeated);
    if (twice.length > 0) return invalid(...twice.map((field) => `${field} stands twice`));
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
        amount: amount === undefined ? undefined : requestedAmount(amount),
        ...(reason && { reason }),
      },
      texts: textsOf(value),
    };
  };

export const parseCapture = parserOf(CaptureRequest, 'captureAmount');
export const parseRefund = parserOf(RefundRequest, 'refundAmount');

/** `texts` are searched for the card number (gaps §4). */
export type ChangeContent = {
  key: string | undefined;
  request: ChangeRequest;
  texts: string[];
};

/** Without `parse` the body is ignored, whatever it is, as of a void (gaps §3). */
export const readChange =
  (parse?: typeof parseCapture) =>
  (request: FastifyRequest): Read<ChangeContent> => {
    const keyed = parseIdempotencyKey(request.raw.rawHeaders);
    const text = takeText(request);
    if (!keyed.ok) return keyed;
    const json = parseText(parse ? text : '', AMOUNTS);
    if (!json.ok) return invalid(notJson(json.at));
    const parsed = (parse ?? parseCapture)(json.value, json.repeated);
    if (!parsed.ok) return parsed;
    const { key } = keyed;
    const texts = key === undefined ? parsed.texts : [...parsed.texts, key];
    return { ok: true, value: { request: parsed.request, texts, key } };
  };
