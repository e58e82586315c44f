/** The API documents with their messages to webhook endpoints (docs/webhooks.md), and the page of errors. */
import { z } from 'zod';
import {
  anchorOf,
  ERROR_CODES,
  ERROR_GUIDE,
  type ErrorEntry,
  messageOf,
  PAYMENT_FAILED,
  statusOf,
} from '../../shared/http/errors.ts';
import { PaymentResponse } from '../../shared/http/payment-schemas.ts';
import { FAILURE_CODES } from '../../shared/payment/fields.ts';
import { DISABLED_TYPE, SUBSCRIBABLE_TYPES, TEST_TYPE } from '../../webhooks/message.ts';
import { documentOf, schemaOf, textsOf } from './document.ts';
import { AUDIT_RUNS, MERCHANT_RUNS } from './record.ts';
import { recordRuns } from './run.ts';

const messageSchema = (types: readonly string[], data: Record<string, z.ZodType>) =>
  z.object({
    type: z.enum(types),
    timestamp: z.string().meta({ format: 'date-time' }),
    data: z.object({ eventId: z.uuid(), ...data }),
  });

const PaymentMessage = messageSchema(
  SUBSCRIBABLE_TYPES.filter((type) => type !== DISABLED_TYPE),
  { revision: z.int().min(0), payment: PaymentResponse },
).meta({ id: 'PaymentMessage' });

const EndpointMessage = messageSchema([TEST_TYPE, DISABLED_TYPE], {
  endpointId: z.string(),
  reason: z.enum(['REQUESTED', 'GONE', 'UNREACHABLE']).optional(),
}).meta({ id: 'EndpointMessage' });

const { merchant, auditor, webhook, errors } = textsOf('documents.yaml');

const webhookOf = (summary: string, schema: z.ZodType) => ({
  post: {
    tags: ['Webhooks'],
    summary,
    security: [],
    parameters: webhook.parameters,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: schemaOf(schema) } },
    },
    responses: webhook.responses,
  },
});

const WEBHOOKS = {
  paymentMessage: webhookOf('What happened to a payment', PaymentMessage),
  endpointMessage: webhookOf('A test, or the end of another endpoint', EndpointMessage),
};

const anchored = (code: string): string => `[${code}](#${anchorOf(code)})`;

const row = (code: (typeof ERROR_CODES)[number]): string =>
  `| ${anchored(code)} | ${statusOf(code)} | ${messageOf(code)} |`;

const entry = (code: string, status: number, { means, todo, stored }: ErrorEntry): string =>
  `## ${code}\n\nHTTP ${status}. ${means}\n\n- **What to do:** ${todo}\n- **What was stored:** ${stored}\n`;

const errorsPage = (): string =>
  [
    errors,
    ...ERROR_CODES.map(row),
    `| ${anchored(PAYMENT_FAILED)} | 402 | no error body: the payment failure response |`,
    '',
    ...ERROR_CODES.map((code) => entry(code, statusOf(code), ERROR_GUIDE[code])),
    entry(PAYMENT_FAILED, 402, ERROR_GUIDE[PAYMENT_FAILED]),
    `Failure codes: ${FAILURE_CODES.map((code) => `\`${code}\``).join(', ')}.\n`,
  ].join('\n');

const asText = (document: object): string => `${JSON.stringify(document, null, 2)}\n`;

export const generatedDocs = async (): Promise<Record<string, string>> => ({
  'docs/openapi.json': asText(
    documentOf({ ...merchant, webhooks: WEBHOOKS }, await recordRuns(MERCHANT_RUNS)),
  ),
  'docs/openapi-audit.json': asText(documentOf(auditor, await recordRuns(AUDIT_RUNS))),
  'docs/errors.md': errorsPage(),
});
