/** The API description for merchants: the routes of the contract, and the additions to it. */
import { CaptureRequest, RefundRequest } from '../../command-api/request/change-request.ts';
import * as create from '../../command-api/request/payment-request.ts';
import manifest from '../../package.json' with { type: 'json' };
import * as both from '../../shared/http/payment-schemas.ts';
import * as responses from '../../shared/http/responses.ts';
import {
  type CommandResponse,
  HEADERS,
  type Operation,
  type Part,
  pathsOf,
  type Recording,
  refTo,
  SECURITY,
  schemasOf,
} from './document.ts';

const PAYMENTS = '/api/v1/payments';
const json = (schema: string) => ({ 'application/json': schema });

const PARAMETERS: Record<string, Part> = {
  PaymentId: {
    name: 'paymentId',
    in: 'path',
    required: true,
    schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,32}$' },
  },
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    required: false,
    description:
      'Makes a repeat safe: the same key and the same request give the first outcome again and move no money twice. It never expires.',
    schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
  },
  UserAgent: {
    name: 'User-Agent',
    in: 'header',
    required: false,
    schema: { type: 'string' },
  },
};

/** What a parser has already refused, or the guard: the same on every route. */
const COMMON: Record<number, CommandResponse> = {
  400: { description: 'The request is malformed; `details` name what is wrong.' },
  401: { description: 'No token, or not a good one.', headers: ['WWW-Authenticate'] },
  403: { description: 'The token lacks the scope, or is for no single merchant.' },
  429: { description: 'Too many requests.', headers: ['Retry-After'] },
  500: { description: 'A fault of ours. A POST may have gone on: repeat it under its key.' },
  503: {
    description: 'The service cannot answer now. Nothing was stored unless `details` say so.',
    headers: ['Retry-After'],
  },
};
const NOT_FOUND: Record<number, CommandResponse> = {
  404: { description: 'The merchant has no such payment.' },
};
const REPLAYED = 'Idempotent-Replayed';
const posting = (notAllowed: string): Record<number, CommandResponse> => ({
  ...COMMON,
  409: {
    description: 'The first request with this Idempotency-Key still runs.',
    headers: ['Retry-After'],
  },
  413: { description: 'The body is above 64 KiB.' },
  422: { description: notAllowed, headers: [REPLAYED] },
  503: {
    description:
      'The provider could not be reached, or its answer was lost (then `Location` is the payment, and its outcome is looked up), or the service cannot take the request now.',
    headers: ['Retry-After', 'Location', REPLAYED],
  },
});

const paid = (description: string, headers: string[]): Record<number, CommandResponse> => ({
  200: { description, content: json('PaymentResponse'), headers: ['ETag', ...headers] },
});

const TAG = 'Payments';
const ADDITIONS = 'Additions to the contract';

const query = (name: string, description: string, schema: Part): Part => ({
  name,
  in: 'query',
  required: false,
  description,
  schema,
});

const CREATE: Operation = {
  operationId: 'createPayment',
  method: 'post',
  path: PAYMENTS,
  summary: 'Create a payment',
  description:
    'Authorizes, or with `captureNow` authorizes and captures in one step. The answer is a 200 or a 402 only when the provider has answered.',
  tag: TAG,
  parameters: [refTo('parameters', 'IdempotencyKey'), refTo('parameters', 'UserAgent')],
  request: { schema: 'PaymentRequest', required: true },
  responses: {
    ...paid('The payment, AUTHORIZED or CAPTURED.', [REPLAYED]),
    402: {
      description: 'The provider declined it; the payment is FAILED.',
      content: json('PaymentFailureResponse'),
      headers: [REPLAYED],
    },
    ...posting('A business rule forbids it, or the Idempotency-Key came with another request.'),
  },
};

const LIST: Operation = {
  operationId: 'listPayments',
  method: 'get',
  path: PAYMENTS,
  summary: 'List payments',
  description:
    'An addition. The own payments, newest first. A page ends with `nextCursor` while there are more; payments made meanwhile do not move the pages that follow.',
  tag: ADDITIONS,
  parameters: [
    query('status', 'Payments in this state alone.', refTo('schemas', 'PaymentStatus')),
    query('from', 'Created at this time or later.', { type: 'string', format: 'date-time' }),
    query('to', 'Created before this time.', { type: 'string', format: 'date-time' }),
    query('merchantReference', 'With exactly this reference.', {
      type: 'string',
      minLength: 1,
      maxLength: 255,
    }),
    query('limit', 'How many at most.', { type: 'integer', minimum: 1, maximum: 100, default: 20 }),
    query('cursor', 'The `nextCursor` of the page before.', { type: 'string', minLength: 1 }),
  ],
  responses: {
    200: { description: 'A page of payments.', content: json('PaymentList') },
    ...COMMON,
  },
};

const GET: Operation = {
  operationId: 'getPayment',
  method: 'get',
  path: `${PAYMENTS}/{paymentId}`,
  summary: 'Get a payment',
  tag: TAG,
  parameters: [refTo('parameters', 'PaymentId')],
  responses: { ...paid('The payment as of now.', []), ...COMMON, ...NOT_FOUND },
};

type Change = Pick<Operation, 'operationId' | 'summary' | 'description' | 'request'> & {
  kind: string;
  done: string;
  refused: string;
};

const change = ({ kind, done, refused, ...operation }: Change): Operation => ({
  ...operation,
  method: 'post',
  path: `${PAYMENTS}/{paymentId}/${kind}`,
  tag: TAG,
  parameters: [refTo('parameters', 'PaymentId'), refTo('parameters', 'IdempotencyKey')],
  responses: { ...paid(done, [REPLAYED]), ...posting(refused), ...NOT_FOUND },
});

const OPERATIONS: Operation[] = [
  CREATE,
  LIST,
  GET,
  change({
    operationId: 'capturePayment',
    kind: 'capture',
    summary: 'Capture a payment',
    description:
      'Takes the authorized amount, or `captureAmount` of it; the rest is released. `amount` is an alias. Without an amount no field but `reason` may stand in the body.',
    request: { schema: 'CaptureRequest', required: false },
    done: 'The payment, CAPTURED.',
    refused: 'The payment cannot be captured, or not with this amount.',
  }),
  change({
    operationId: 'voidPayment',
    kind: 'void',
    summary: 'Void a payment',
    description: 'Releases the authorization. A body is ignored.',
    done: 'The payment, VOIDED.',
    refused: 'The payment is not AUTHORIZED.',
  }),
  change({
    operationId: 'refundPayment',
    kind: 'refund',
    summary: 'Refund a payment',
    description:
      'Gives back what is left, or `refundAmount` of it. `amount` is an alias. Without an amount no field but `reason` may stand in the body.',
    request: { schema: 'RefundRequest', required: false },
    done: 'The payment, REFUNDED, or CAPTURED while some is left.',
    refused: 'The payment cannot be refunded, or not with this amount.',
  }),
];

/** The document for merchants, with every status shown by what was recorded. */
export const merchantDocument = (recordings: Recording[]): Part => ({
  openapi: '3.1.0',
  info: {
    title: 'Payments',
    version: manifest.version,
    description:
      'Card payments: authorize, capture, void, refund. Amounts are integers in minor units. The contract in words is docs/interface.md; what each error means and what to do is at [/docs/errors](/docs/errors).',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: '/', description: 'The service that serves this page' }],
  security: SECURITY.security,
  tags: [
    { name: TAG, description: 'The contract' },
    { name: ADDITIONS, description: 'What the service offers beside the contract' },
  ],
  paths: pathsOf(OPERATIONS, recordings),
  components: {
    securitySchemes: SECURITY.securitySchemes,
    parameters: PARAMETERS,
    headers: HEADERS,
    schemas: schemasOf([create, { CaptureRequest, RefundRequest }, both, responses]),
  },
});
