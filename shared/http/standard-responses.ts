/** The parts of the API documents that routes share. */
import { PAYMENT_ID } from '../payment/event-fields.ts';
import { isOfMerchants } from './auth/tokens.ts';
import type { RequestForm, ResponseForm, ResponseHeader } from './route.ts';
import { type RoutePlace, SIGNED } from './route-table.ts';

export type Part = Record<string, unknown>;

const header = (description: string, schema: Part, required = true): Part => ({
  description,
  required,
  schema: { type: 'string', ...schema },
});

/** The first two are on every response, `Link` on every error. */
export const HEADERS: Readonly<
  Record<ResponseHeader | 'Request-Id' | 'Cache-Control' | 'Link', Part>
> = {
  'Request-Id': header('Names this request in the log.', { pattern: '^[0-9A-Z]{26}$' }),
  'Cache-Control': header('Nothing is kept on the way.', { const: 'no-store' }),
  ETag: header('The revision of the payment.', { pattern: '^"[0-9]+"$' }),
  Link: header('Leads to what docs/errors.md says of this error.', {
    pattern: '^</docs/errors#[a-z_]+>; rel="help"$',
  }),
  'Retry-After': header('Seconds to wait before another try.', { pattern: '^[1-9][0-9]*$' }),
  'WWW-Authenticate': header('How to authenticate.', { const: 'Bearer' }),
  Location: header(
    'The payment, where there is one to look at.',
    { pattern: PAYMENT_ID.source.replace('^', '^/api/v1/payments/') },
    false,
  ),
  'Idempotent-Replayed': header(
    'There when another request under this key did it.',
    { const: 'true' },
    false,
  ),
};

type ParameterName = 'PaymentId' | 'EndpointId' | NonNullable<RequestForm['headers']>[number];

export const PARAMETERS: Readonly<Record<ParameterName, Part>> = {
  PaymentId: {
    name: 'paymentId',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: PAYMENT_ID.source },
  },
  EndpointId: {
    name: 'endpointId',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: '^we_[0-9A-Z]{26}$' },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes a repeat safe: the same key and the same request give the first outcome again and move no money twice. It never expires.',
    schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  },
  StripeSignature: {
    name: 'Stripe-Signature',
    in: 'header',
    required: true,
    description: "Time and HMAC-SHA256 of the raw body: `t=…,v1=…`, by one of Stripe's secrets.",
    schema: { type: 'string' },
  },
  UserAgent: { name: 'User-Agent', in: 'header', required: false, schema: { type: 'string' } },
};

type Responses = Record<number, ResponseForm>;

const LATER = ['Retry-After'] as const;

const BEFORE_THE_BODY: Responses = {
  401: { description: 'No token, or not a good one.', headers: ['WWW-Authenticate'] },
  429: { description: 'Too many requests.', headers: LATER },
};

const FOR_MERCHANTS: Responses = {
  ...BEFORE_THE_BODY,
  403: { description: 'The token lacks the scope, or is for no single merchant.' },
  500: { description: 'A fault of ours. A POST may have gone on: repeat it under its key.' },
  503: {
    description: 'The service cannot answer now. Nothing was stored unless `details` say so.',
    headers: LATER,
  },
};

const FOR_OTHERS: Responses = {
  ...BEFORE_THE_BODY,
  403: { description: 'The token lacks the scope.' },
  500: {
    description: 'A fault of ours, or an event that cannot be read; `details` name it.',
    unrecorded: true,
  },
  503: { description: 'The service cannot answer now.', headers: LATER },
};

const OF_ALL = { 403: { description: 'The token lacks the scope, or is for one merchant.' } };
const OF_PERSON = {
  403: { description: 'The token lacks the scope or a `sub`, or is for one merchant.' },
};
const TOO_LARGE = { 413: { description: 'The body is above 64 KiB.' } };

const malformed = (isForMerchants: boolean, method: RoutePlace['method']): string => {
  if (isForMerchants) return 'The request is malformed; `details` name what is wrong.';
  return method === 'GET'
    ? 'A parameter is malformed, or not known.'
    : 'The paymentId or the body is malformed.';
};

export const mayBeTooLarge = ({ method, path }: RoutePlace, form: RequestForm): boolean =>
  (method === 'POST' || method === 'PATCH') &&
  (form.body !== undefined || path.includes(':paymentId'));

export const standardResponses = (place: RoutePlace, form: RequestForm): Responses => {
  if (place.scope === SIGNED) return mayBeTooLarge(place, form) ? TOO_LARGE : {};
  const isForMerchants = isOfMerchants(place.scope);
  const missing = isForMerchants
    ? 'The merchant has no such payment.'
    : 'No such payment to be seen.';
  return {
    ...(isForMerchants ? FOR_MERCHANTS : FOR_OTHERS),
    ...((form.query ?? form.paymentId ?? form.read) !== undefined && {
      400: { description: malformed(isForMerchants, place.method) },
    }),
    ...(form.allMerchants && (form.person ? OF_PERSON : OF_ALL)),
    ...(form.paymentId !== undefined && { 404: { description: missing } }),
    ...(mayBeTooLarge(place, form) && TOO_LARGE),
  };
};
