/** The headers and parameters that routes share, as the API documents describe them. */
import { PAYMENT_ID } from '../payment/payment-id.ts';
import type { RequestForm, ResponseHeader } from './route.ts';

/** A header, parameter or schema object. */
export type Part = Record<string, unknown>;

const header = (description: string, schema: Part, required = true): Part => ({
  description,
  required,
  schema: { type: 'string', ...schema },
});

/** By name: the first two are on every response, `Link` on every error. */
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

type ParameterName = 'PaymentId' | NonNullable<RequestForm['headers']>[number];

export const PARAMETERS: Readonly<Record<ParameterName, Part>> = {
  PaymentId: {
    name: 'paymentId',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: PAYMENT_ID.source },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes a repeat safe: the same key and the same request give the first outcome again and move no money twice. It never expires.',
    schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  },
  UserAgent: { name: 'User-Agent', in: 'header', required: false, schema: { type: 'string' } },
};
