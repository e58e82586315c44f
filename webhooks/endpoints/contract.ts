import { z } from 'zod';
import {
  choice,
  limitParameter,
  merchantParameter,
  moment,
  named,
  object,
  optionalText,
  parameters,
  parameterText,
  REQUIRED,
} from '../../shared/http/fields.ts';
import { looksLikeCard } from '../../shared/runtime/card-numbers.ts';
import { orElse } from '../../shared/runtime/error-text.ts';
import { attempt } from '../delivery/delivery-row.ts';
import { SUBSCRIBABLE_TYPES } from '../message.ts';
import { ATTEMPTS_MAX } from '../store/port.ts';
import { type AddressKindOf, literalOf, urlProblem } from './addresses.ts';

const url = z
  .string({ error: ({ input }) => (input === undefined ? REQUIRED : 'must be a string') })
  .min(1, REQUIRED)
  .meta({
    format: 'uri',
    maxLength: 2048,
    description:
      'https, port 443 or from 1024, a public address, no user name, password, fragment or control character. Kept and shown as the URL standard writes it.',
  });
const eventTypes = z
  .array(choice(SUBSCRIBABLE_TYPES), { error: 'must be an array' })
  .min(1, 'must name at least one type')
  .max(40, 'must have at most 40 items')
  .transform((types) => [...new Set(types)])
  .optional()
  .meta({ description: 'Left out at the registration: all but `payment.created`.' });
const withoutCard = (value: string | undefined) => value === undefined || !looksLikeCard(value);
const description = optionalText().refine(withoutCard, 'must not hold a card number');

/** The receiver reads an address without escapes; one that is no UTF-8 counts as a gap. */
const decoded = (url: string): string =>
  url.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => orElse(' ', () => decodeURIComponent(escapes)));

const HOST_AND_PORT = /^https?:[/\\]*[^/\\?]*/i;

/** Not in an IP address: one in ten with a port passes for a card. */
const cardProblem = (text: string): string | undefined => {
  const url = new URL(text);
  const name = literalOf(url) === undefined ? url.hostname : '';
  const path = text.replace(HOST_AND_PORT, '');
  const holdsCard = [name, path, decoded(path), url.pathname].some((part) => looksLikeCard(part));
  return holdsCard ? 'must not hold a card number' : undefined;
};

/** The schemas do not know which networks the operator allows. */
export const urlDetails = (value: string | undefined, kindOf: AddressKindOf): string[] => {
  if (value === undefined) return [];
  const problem = urlProblem(value, kindOf) ?? cardProblem(value);
  return problem === undefined ? [] : [`url ${problem}`];
};

export const WebhookEndpointRequest = object({ url, eventTypes, description }).meta({
  id: 'WebhookEndpointRequest',
});
export const WebhookEndpointChange = object({
  url: url.optional(),
  eventTypes,
  description,
  status: choice(['ENABLED', 'DISABLED']).optional(),
  resumeFrom: choice(['checkpoint', 'now'])
    .optional()
    .meta({ description: 'With status ENABLED: where it stopped (left out), or after now.' }),
}).meta({ id: 'WebhookEndpointChange' });

const HOURS_MAX = 168;
const HOURS_DEFAULT = 24;
const HOURS_FORM = `must be an integer from 0 to ${HOURS_MAX}`;
export const WebhookRotation = object({
  oldExpiresInHours: z
    .int({ error: HOURS_FORM })
    .min(0, HOURS_FORM)
    .max(HOURS_MAX, HOURS_FORM)
    .default(HOURS_DEFAULT),
}).meta({ id: 'WebhookRotation' });

const ONE_OF = 'exactly one of since and eventId is required';
export const WebhookResend = object({
  since: moment(),
  eventId: z.uuid({ error: 'must be the id of an event' }).optional(),
})
  .refine(({ since, eventId }) => (since === undefined) !== (eventId === undefined), ONE_OF)
  .meta({ id: 'WebhookResend', minProperties: 1, not: { required: ['since', 'eventId'] } });

const CURSOR_FORM = 'must be the next of a page';
export const AttemptParameters = parameters({
  limit: limitParameter(ATTEMPTS_MAX, 100),
  eventId: z.uuid({ error: 'must be the id of an event' }).optional(),
  cursor: parameterText()
    .regex(/^[0-9]{1,15}$/, CURSOR_FORM)
    .transform(Number)
    .optional()
    .meta({ description: 'The `next` of the page before.' }),
});
export const AllEndpointsParameters = parameters({
  merchant: merchantParameter().optional(),
});

const time = z.string().meta({ format: 'date-time' });
const endpoint = {
  id: z.string(),
  url: z.string(),
  eventTypes: z.array(z.string()),
  description: z.string().optional(),
  apiVersion: z.literal('v1'),
  status: z.enum(['ENABLED', 'FAILING', 'DISABLED']),
  failingSince: time.nullable().describe('Since when no request was a success.'),
  disabledReason: z.enum(['REQUESTED', 'GONE', 'UNREACHABLE']).nullable(),
  oldestWaiting: time
    .nullable()
    .describe('When the oldest event happened that is not accepted yet.'),
  oldSecretExpiresAt: time.optional(),
  createdAt: time,
  updatedAt: time,
};
export const WebhookEndpoint = z.object(endpoint).meta({ id: 'WebhookEndpoint' });
export type WebhookEndpoint = z.infer<typeof WebhookEndpoint>;
export const WebhookEndpointWithSecret = named('WebhookEndpointWithSecret', {
  ...endpoint,
  secret: z.string().describe('Shown this once; lost, it is rotated.'),
});
export type WebhookEndpointWithSecret = z.infer<typeof WebhookEndpointWithSecret>;
export const WebhookEndpointList = named('WebhookEndpointList', {
  endpoints: z.array(WebhookEndpoint),
});
export type WebhookEndpointList = z.infer<typeof WebhookEndpointList>;
export const MerchantEndpointList = named('MerchantEndpointList', {
  endpoints: z.array(
    z.object({ merchantId: z.string(), ...endpoint }).meta({ id: 'MerchantEndpoint' }),
  ),
  unreadable: z
    .array(z.string())
    .optional()
    .describe('Merchants whose endpoints cannot be read: nothing is sent to them.'),
});
export const WebhookTest = named('WebhookTest', {
  eventId: z.string().describe('Of its attempt.'),
});
export const WebhookAttemptList = named('WebhookAttemptList', {
  attempts: z.array(attempt.meta({ id: 'WebhookAttempt' })),
  next: z.string().nullable().describe('`cursor` of the next page; null where there is none.'),
});
export type WebhookAttemptList = z.infer<typeof WebhookAttemptList>;
