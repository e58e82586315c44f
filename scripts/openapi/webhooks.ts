/** The messages that webhook endpoints are sent, for the document of merchants (docs/webhooks.md). */
import { z } from 'zod';
import { PaymentResponse } from '../../shared/http/payment-schemas.ts';
import { DISABLED_TYPE, SUBSCRIBABLE_TYPES, TEST_TYPE } from '../../webhooks/message.ts';
import { type Part, textsOf } from './document.ts';

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

const { parameters, responses } = textsOf('documents.yaml').webhook;

/** The webhooks by their names in the document; `schemaOf` returns the reference to a schema. */
export const webhooksIn = (schemaOf: (schema: z.ZodType) => Part) => {
  const webhook = (summary: string, schema: z.ZodType) => ({
    post: {
      tags: ['Webhooks'],
      summary,
      security: [],
      parameters,
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(schema) } },
      },
      responses,
    },
  });
  return {
    paymentMessage: webhook('What happened to a payment', PaymentMessage),
    endpointMessage: webhook('A test, or the end of another endpoint', EndpointMessage),
  };
};
