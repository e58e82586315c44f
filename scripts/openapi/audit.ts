/** The second API description: the routes of auditors and operators. */
import type { z } from 'zod';
import * as audit from '../../audit/contract.ts';
import manifest from '../../package.json' with { type: 'json' };
import { ErrorBody, PaymentStatus } from '../../shared/http/responses.ts';
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
import * as operators from './operator-schemas.ts';

const AUDIT = 'Audit';
const OPERATIONS = 'Operations';

const json = (schema: string) => ({ 'application/json': schema });
const LINES = { 'application/x-ndjson': { type: 'string' } };
const EVENTS = { 'text/event-stream': { type: 'string' } };

const PAYMENT_ID: Part = {
  name: 'paymentId',
  in: 'path',
  required: true,
  schema: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,32}$' },
};

const REFUSALS: Record<number, CommandResponse> = {
  401: { description: 'No token, or not a good one.', headers: ['WWW-Authenticate'] },
  403: { description: 'The token lacks the scope.' },
  429: { description: 'Too many requests.', headers: ['Retry-After'] },
  500: {
    description: 'A fault of ours, or an event that cannot be read; `details` name it.',
    unrecorded: true,
  },
  503: { description: 'The service cannot answer now.', headers: ['Retry-After'] },
};
const MALFORMED: Record<number, CommandResponse> = {
  400: { description: 'A parameter is malformed, or not known.' },
};
const MISSING: Record<number, CommandResponse> = {
  404: { description: 'No such payment to be seen.' },
};

const TEXT: Part = { type: 'string' };
const TIME: Part = { type: 'string', format: 'date-time' };
const MINOR: Part = { type: 'integer', minimum: 0 };

type Described = Record<string, [description: string, schema: Part, required?: true]>;

/** Query parameters in words. Throws where the route's own schema has others. */
const parameters = (schema: z.ZodObject, described: Described): Part[] => {
  const own = Object.keys(schema.shape).sort().join(', ');
  const named = Object.keys(described).sort().join(', ');
  if (own !== named) throw new Error(`the parameters are ${own}, described are ${named}`);
  return Object.entries(described).map(([name, [description, shape, required = false]]) => ({
    name,
    in: 'query',
    required,
    description,
    schema: shape,
  }));
};

const SEARCH = parameters(audit.SearchParameters, {
  q: ['A paymentId, a merchantReference or the last four digits of a card, whole and exact.', TEXT],
  status: ['Payments in this state alone.', refTo('schemas', 'PaymentStatus')],
  from: ['Created at this time or later.', TIME],
  to: ['Created before this time.', TIME],
  minAmount: ['At least this amount, in minor units.', MINOR],
  maxAmount: ['At most this amount, in minor units.', MINOR],
  merchant: ['Of this merchant alone; for a token of all merchants.', TEXT],
  cursor: ['The `next` of the page before.', TEXT],
  limit: ['How many at most.', { type: 'integer', minimum: 1, maximum: 200, default: 50 }],
});
const LOG = parameters(audit.LogParameters, {
  from: ['`start`, or a position: everything after it.', TEXT],
  fromTime: ['Events of this time or later.', TIME],
  toTime: ['Events before this time.', TIME],
  limit: [
    'How many at most; an export has no limit unless one is given.',
    { type: 'integer', minimum: 1, maximum: 1000 },
  ],
});
const STREAM = parameters(audit.StreamParameters, {
  from: ['`start`, `now`, or a position; `Last-Event-ID` goes before it.', TEXT],
});
const STATE = parameters(audit.StateParameters, {
  revision: ['The payment at this revision.', MINOR],
  at: ['The payment as it was at this time.', TIME],
});
const EXPLAIN = parameters(audit.ExplainParameters, {
  command: ['What is asked about.', { type: 'string', enum: ['capture', 'void', 'refund'] }, true],
  amount: ['With this amount, in minor units.', { type: 'integer', minimum: 1 }],
});
const VERIFY = parameters(audit.VerifyParameters, {
  position: ['With `hash`: the head of an earlier export, which the log must still hold.', TEXT],
  hash: ['See `position`.', { type: 'string', pattern: '^[0-9a-f]{64}$' }],
});

const reading = (
  operation: Omit<Operation, 'method' | 'tag' | 'responses'>,
  content: CommandResponse['content'],
  more: Record<number, CommandResponse> = {},
): Operation => ({
  ...operation,
  method: 'get',
  tag: AUDIT,
  responses: {
    200: { description: 'The answer.', ...(content && { content }) },
    ...MALFORMED,
    ...REFUSALS,
    ...more,
  },
});

const ONE = '/audit/v1/payments/{paymentId}';

const READINGS: Operation[] = [
  reading(
    {
      operationId: 'searchPayments',
      path: '/audit/v1/payments',
      summary: 'Find payments',
      description: 'Newest first, over all merchants that the token may see.',
      parameters: SEARCH,
    },
    json('AuditSearchPage'),
  ),
  reading(
    {
      operationId: 'paymentEvents',
      path: `${ONE}/events`,
      summary: 'What happened to a payment',
      description:
        'Its events, oldest first. `Accept: application/x-ndjson` gives the export, one stored event per line.',
      parameters: [PAYMENT_ID],
    },
    { ...json('AuditTimeline'), ...LINES },
    MISSING,
  ),
  reading(
    {
      operationId: 'paymentState',
      path: `${ONE}/state`,
      summary: 'A payment as it was then',
      description:
        'At a revision or a time, with the event that led there and what is different now.',
      parameters: [PAYMENT_ID, ...STATE],
    },
    json('AuditState'),
    MISSING,
  ),
  reading(
    {
      operationId: 'verifyPayment',
      path: `${ONE}/verify`,
      summary: "Verify a payment's chain",
      parameters: [PAYMENT_ID],
    },
    json('AuditVerification'),
    MISSING,
  ),
  reading(
    {
      operationId: 'explainCommand',
      path: `${ONE}/explain`,
      summary: 'Would this be allowed now, and if not, why',
      parameters: [PAYMENT_ID, ...EXPLAIN],
    },
    json('AuditExplanation'),
    MISSING,
  ),
  reading(
    {
      operationId: 'readLog',
      path: '/audit/v1/events',
      summary: 'The log from a position',
      description: 'In pages; `Accept: application/x-ndjson` gives the export.',
      parameters: LOG,
    },
    { ...json('AuditLogPage'), ...LINES },
  ),
  {
    ...reading(
      {
        operationId: 'streamLog',
        path: '/audit/v1/events/stream',
        summary: 'The log, live',
        description: 'Server-sent events; the id of each is its position.',
        parameters: STREAM,
      },
      EVENTS,
    ),
  },
  reading(
    {
      operationId: 'verifyLog',
      path: '/audit/v1/verify',
      summary: 'Verify the whole log',
      description: '`Accept: text/event-stream` gives progress, then the result.',
      parameters: VERIFY,
    },
    { ...json('AuditVerification'), ...EVENTS },
  ),
];

const RECONCILE: Operation = {
  operationId: 'reconcile',
  method: 'post',
  path: '/audit/v1/reconcile',
  summary: "Compare the provider's ledger with the log",
  description: 'For a token of all merchants.',
  tag: AUDIT,
  parameters: [],
  responses: { 200: { description: 'The answer.', content: json('Reconciliation') }, ...REFUSALS },
};

const operating = (
  operation: Omit<Operation, 'tag' | 'responses' | 'parameters'>,
  schema: string,
  more: Record<number, CommandResponse> = {},
): Operation => ({
  ...operation,
  tag: OPERATIONS,
  parameters: operation.path.includes('{paymentId}') ? [PAYMENT_ID] : [],
  responses: { 200: { description: 'The answer.', content: json(schema) }, ...REFUSALS, ...more },
});

const ON_PAYMENT: Record<number, CommandResponse> = {
  400: { description: 'The paymentId or the body is malformed.' },
  413: { description: 'The body is above 64 KiB.' },
  ...MISSING,
};

const OPERATING: Operation[] = [
  operating(
    {
      operationId: 'listUnresolved',
      method: 'get',
      path: '/ops/v1/unresolved',
      summary: 'Operations whose outcome nobody knows yet',
    },
    'UnresolvedList',
  ),
  operating(
    {
      operationId: 'resolvePayment',
      method: 'post',
      path: '/ops/v1/payments/{paymentId}/resolve',
      summary: 'End an operation by hand',
      description: 'Where the provider will never answer; the word and its evidence are recorded.',
      request: { schema: 'ResolveRequest', required: true },
    },
    'Resolution',
    {
      ...ON_PAYMENT,
      422: { description: 'There is nothing to resolve, or something better can be had.' },
    },
  ),
  operating(
    {
      operationId: 'listParked',
      method: 'get',
      path: '/ops/v1/parked',
      summary: 'Payments whose document stopped at an event',
    },
    'ParkedList',
  ),
  {
    ...operating(
      {
        operationId: 'retryParked',
        method: 'post',
        path: '/ops/v1/parked/{paymentId}/retry',
        summary: 'Read a parked payment again',
      },
      'ParkedRetry',
      ON_PAYMENT,
    ),
  },
];

const OF_ALL: Record<number, CommandResponse> = {
  403: { description: 'The token lacks the scope, or is for one merchant.' },
};

OPERATING.push(
  operating(
    {
      operationId: 'listProjections',
      method: 'get',
      path: '/ops/v1/projections',
      summary: 'How far the read models are',
      description: "Against the event store's own head. For a token of all merchants.",
    },
    'ProjectionList',
    OF_ALL,
  ),
  {
    operationId: 'rebuildProjections',
    method: 'post',
    path: '/ops/v1/projections/rebuild',
    summary: 'Fill the read models anew',
    description:
      'Beside those that are served, which go on being read. `Accept: text/event-stream` gives `progress`, then `result` or `failed`. For a token of all merchants.',
    tag: OPERATIONS,
    parameters: [],
    responses: {
      200: { description: 'Its progress, as it goes.', content: EVENTS, unrecorded: true },
      202: { description: 'It has begun.', content: json('RebuildStarted') },
      ...REFUSALS,
      ...OF_ALL,
      503: {
        description:
          'Another rebuild is under way, this projector stands by, or an engine is away.',
        headers: ['Retry-After'],
      },
    },
  },
);

/** Nothing makes these happen on demand: a stream has no end, a parked payment needs a fault. */
const UNRECORDED: Record<string, number[]> = { streamLog: [200], retryParked: [200] };

const withUnrecorded = (operation: Operation): Operation => {
  const without = UNRECORDED[operation.operationId] ?? [];
  const responses = Object.entries(operation.responses).map(([status, response]) =>
    without.includes(Number(status))
      ? [status, { ...response, unrecorded: true as const }]
      : [status, response],
  );
  return { ...operation, responses: Object.fromEntries(responses) };
};

/** The document for auditors and operators. */
export const auditDocument = (recordings: Recording[]): Part => {
  const { Location: _, ETag: __, 'Idempotent-Replayed': ___, ...headers } = HEADERS;
  const operations = [...READINGS, RECONCILE, ...OPERATING].map(withUnrecorded);
  const bodies = Object.fromEntries(
    Object.entries(audit).filter(([name]) => !name.endsWith('Parameters')),
  );
  return {
    openapi: '3.1.0',
    info: {
      title: 'Payments: audit and operations',
      version: manifest.version,
      description:
        'What happened, and proof of it (scope `audit:read`); what has to be looked after (scope `ops:admin`). A token of one merchant sees that merchant alone, one with merchant `*` sees all. Errors are those of [/docs/errors](/docs/errors).',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/', description: 'The service that serves this page' }],
    security: SECURITY.security,
    tags: [
      { name: AUDIT, description: 'Scope audit:read' },
      { name: OPERATIONS, description: 'Scope ops:admin' },
    ],
    paths: pathsOf(operations, recordings),
    components: {
      securitySchemes: SECURITY.securitySchemes,
      headers,
      schemas: schemasOf([bodies, operators, { ErrorBody, PaymentStatus }]),
    },
  };
};
