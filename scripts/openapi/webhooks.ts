/** The messages that webhook endpoints are sent, for the document of merchants (docs/webhooks.md). */
import { z } from 'zod';
import { PaymentResponse } from '../../shared/http/payment-schemas.ts';
import { DISABLED_TYPE, SUBSCRIBABLE_TYPES, TEST_TYPE } from '../../webhooks/message.ts';
import type { Part } from './document.ts';

const messageOf = (types: readonly string[], data: Record<string, z.ZodType>) =>
  z.object({
    type: z.enum(types),
    timestamp: z.string().meta({ format: 'date-time' }),
    data: z.object({ eventId: z.uuid(), ...data }),
  });

const PaymentMessage = messageOf(
  SUBSCRIBABLE_TYPES.filter((type) => type !== DISABLED_TYPE),
  { revision: z.int().min(0), payment: PaymentResponse },
).meta({ id: 'PaymentMessage' });

const EndpointMessage = messageOf([TEST_TYPE, DISABLED_TYPE], {
  endpointId: z.string(),
  reason: z.enum(['REQUESTED', 'GONE', 'UNREACHABLE']).optional(),
}).meta({ id: 'EndpointMessage' });

const header = (name: string, description: string) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string' },
});

const HEADERS = [
  header('webhook-id', 'The same at every attempt: deduplicate by it.'),
  header('webhook-timestamp', 'Seconds since 1970; new at each attempt.'),
  header('webhook-signature', 'Standard Webhooks, version v1; two while a secret is rotated.'),
];

/** The webhooks by their names in the document; `schemaOf` returns the reference to a schema. */
export const webhooksIn = (schemaOf: (schema: z.ZodType) => Part) => {
  const webhook = (summary: string, schema: z.ZodType) => ({
    post: {
      tags: ['Webhooks'],
      summary,
      security: [],
      parameters: HEADERS,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(schema) } },
      },
      responses: {
        '2XX': { description: 'Accepted. Anything else is sent again, for about 70 hours.' },
        410: { description: 'Disables the endpoint.' },
      },
    },
  });
  return {
    paymentMessage: webhook('What happened to a payment', PaymentMessage),
    endpointMessage: webhook('A test, or the end of another endpoint', EndpointMessage),
  };
};
