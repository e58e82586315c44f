import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Position } from '../shared/event-store/port.ts';
import { reject } from '../shared/http/errors.ts';
import {
  asNumber,
  merchantParameter,
  moment,
  parameters,
  parameterText,
  shortParameter,
} from '../shared/http/fields.ts';
import { type Read, soleHeader } from '../shared/http/request.ts';
import { PAYMENT_ID_FORM } from '../shared/http/route.ts';
import { PAYMENT_ID, PAYMENT_STATUSES } from '../shared/payment/fields.ts';
import { holdsKnownCard } from '../shared/runtime/card-numbers.ts';
import { jsonValueOf } from '../shared/runtime/json.ts';
import { type Manifest, manifestShape } from './manifest.ts';

/** Covers every store's form; the store itself checks whether the log has such a position. */
export const POSITION = /^[A-Za-z0-9_.:/-]{1,64}$/;
export const NO_POSITION = 'must be start or a position of the log';
export const NO_POSITION_NOR_NOW = 'must be start, now or a position of the log';

export const NO_EVENTS_POSITION = 'must be a position of the log';

export const NO_LAST_ID = `Last-Event-ID ${NO_EVENTS_POSITION}`;

export const startOf = (from: string | undefined): Position | null =>
  from === undefined || from === 'start' ? null : from;

const wholeNumber = (min: number, max: number, more: { default?: number } = {}) => {
  const wording = `must be a whole number from ${min} to ${max}`;
  const isInRange = (value: string) =>
    /^[0-9]{1,16}$/.test(value) && Number(value) >= min && Number(value) <= max;
  const highest = max === Number.MAX_SAFE_INTEGER ? undefined : max;
  return parameterText()
    .refine(isInRange, wording)
    .meta({ ...asNumber(min, highest), ...more })
    .transform(Number)
    .optional();
};

const amount = () => wholeNumber(0, Number.MAX_SAFE_INTEGER);
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: `must be one of ${values.join(', ')}` });

const position = (otherwise = NO_POSITION) => parameterText().regex(POSITION, otherwise);

export const SEARCH_LIMIT_DEFAULT = 50;

export const SearchParameters = parameters({
  q: shortParameter()
    // An address is kept in histories and by proxies, so it must not be a way to send a card number.
    .refine((text) => !holdsKnownCard(text), {
      error: 'must not hold a card number: only its last four digits are kept',
    })
    .optional()
    .describe(
      'A paymentId, a merchantReference or the last four digits of a card, whole and exact. A whole card number is rejected.',
    ),
  status: oneOf(PAYMENT_STATUSES).optional().describe('Payments in this state alone.'),
  from: moment().describe('Created at this time or later.'),
  to: moment().describe('Created before this time.'),
  minAmount: amount().describe('At least this amount, in minor units.'),
  maxAmount: amount().describe('At most this amount, in minor units.'),
  merchant: merchantParameter()
    .optional()
    .describe('Of this merchant alone; for a token of all merchants.'),
  cursor: shortParameter().optional().describe('The `next` of the page before.'),
  limit: wholeNumber(1, 200, { default: SEARCH_LIMIT_DEFAULT }).describe('How many at most.'),
});

const momentOfPayment = {
  revision: wholeNumber(0, Number.MAX_SAFE_INTEGER).describe('The payment at this revision.'),
  at: moment().describe('The payment as it was at this time.'),
};
type PaymentMoment = { revision?: number | undefined; at?: string | undefined };
const namesOneMoment = ({ revision, at }: PaymentMoment): boolean =>
  revision === undefined || at === undefined;
const TWO_MOMENTS = { error: 'must not be given beside revision', path: ['at'] };

const personal = oneOf(['true', 'false'])
  .optional()
  .describe(
    'Whether names and addresses are opened, for the scope `audit:personal`, which opens them where it is left out.',
  );

export const TimelineParameters = parameters({ personal });

export const StateParameters = parameters({ ...momentOfPayment, personal }).refine(
  namesOneMoment,
  TWO_MOMENTS,
);

export const LogParameters = parameters({
  from: position().optional().describe('`start`, or a position: everything after it.'),
  fromTime: moment().describe('Events of this time or later.'),
  toTime: moment().describe('Events before this time.'),
  limit: wholeNumber(1, 1000).describe(
    'How many at most; an export has no limit unless one is given.',
  ),
});

export const ExportParameters = parameters({
  ...LogParameters.shape,
  payment: parameterText()
    .regex(PAYMENT_ID, PAYMENT_ID_FORM)
    .optional()
    .describe('The events of this payment alone.'),
}).refine(
  ({ payment, ...range }) =>
    payment === undefined || Object.values(range).every((one) => one === undefined),
  { error: 'is whole: no range can be given beside it', path: ['payment'] },
);

export const StreamParameters = parameters({
  from: position(NO_POSITION_NOR_NOW)
    .optional()
    .describe('`start`, `now`, or a position; the header `Last-Event-ID` takes precedence.'),
});

export const ExplainParameters = parameters({
  command: oneOf(['capture', 'void', 'refund']).describe('The command to explain.'),
  amount: wholeNumber(1, Number.MAX_SAFE_INTEGER).describe(
    'The amount of the command, in minor units.',
  ),
  ...momentOfPayment,
})
  .refine(({ command, amount: requested }) => command !== 'void' || requested === undefined, {
    error: 'is not for void, which releases the whole authorization',
    path: ['amount'],
  })
  .refine(namesOneMoment, TWO_MOMENTS);

const manifestIn = (text: string): unknown =>
  jsonValueOf(Buffer.from(text, 'base64url').toString());

export const VerifyParameters = parameters({
  keys: oneOf(['true'])
    .optional()
    .describe('Compare the boxes of the log with the store of keys; for a token of all merchants.'),
  manifest: parameterText()
    .transform(manifestIn)
    .refine((read) => manifestShape.safeParse(read).success, 'must be a manifest in base64url')
    .transform((read) => read as Manifest)
    .optional()
    .meta({
      type: 'string',
      description:
        'The manifest of an earlier export, in base64url: the log must still hold its head.',
    }),
});

/** Takes precedence over `from`; undefined where there is none. */
export const readLastEventId = ({ raw }: FastifyRequest): Read<string | undefined> => {
  const value = soleHeader(raw.rawHeaders, 'last-event-id');
  return value === null || (value !== undefined && !POSITION.test(value))
    ? { ok: false, details: [NO_LAST_ID] }
    : { ok: true, value };
};

/** For the RangeError of a place that the log does not have. Throws any other error. */
export const rejectPlace = (reply: FastifyReply, error: unknown, detail: string): FastifyReply => {
  if (!(error instanceof RangeError)) throw error;
  return reject(reply, 'INVALID_REQUEST', [detail]);
};
