import { z } from 'zod';
import { named, REQUIRED, requiredChoice, requiredOr, time } from '../../../shared/http/fields.ts';
import { APPROVAL_MS_MAX } from '../../../shared/payment/decide.ts';
import type { ResolutionRequest } from '../../../shared/payment/state.ts';
import { holdsLongNumber } from '../../../shared/runtime/card-numbers.ts';
import type { Config } from '../../../shared/runtime/config.ts';
import { withoutSecrets } from '../../../shared/runtime/settings/effective.ts';
import { VERSION } from '../../../shared/runtime/version.ts';

const operation = z.enum(['create', 'capture', 'void', 'refund']);
const amountMinor = z.int().min(1);

const request = z.object({
  outcome: z.enum(['APPROVED', 'DECLINED']),
  withoutFence: z.boolean(),
  evidence: z.string(),
  requestedBy: z.string(),
  requestedAt: time(),
  expiresAt: time().describe('Until then another operator can approve it.'),
});

export const requestBody = (waiting: ResolutionRequest): z.infer<typeof request> => {
  const { outcome, withoutFence = false, evidence, requestedBy, requestedAt } = waiting;
  const expiresAt = new Date(Date.parse(requestedAt) + APPROVAL_MS_MAX).toISOString();
  return { outcome, withoutFence, evidence, requestedBy, requestedAt, expiresAt };
};

const listed = z.object({
  paymentId: z.string(),
  merchantId: z.string(),
  state: z
    .enum(['UNRESOLVED', 'UNCONFIRMED', 'CONTRADICTED'])
    .describe(
      'UNRESOLVED: the outcome is not known. CONTRADICTED: the provider says other than what was resolved by hand, or recorded as never carried out. UNCONFIRMED: resolved by hand, and the provider has said nothing definite yet.',
    ),
  operation,
  operationId: z.string(),
  amountMinor,
  currency: z.string(),
  since: time().describe('When the operation was requested.'),
  otherProvider: z
    .string()
    .optional()
    .describe(
      'It was sent to this provider, which is not the one that is set: it is neither asked about nor fenced.',
    ),
  attempts: z.int().min(0).describe('How often the provider was asked in vain.'),
  nextAttemptAt: time().nullable(),
  request: request.optional(),
});
export type ListedOperation = z.infer<typeof listed>;

export const UnresolvedList = named('UnresolvedList', {
  unresolved: z.array(listed).describe('Unresolved and contradicted operations.'),
  unconfirmed: z.array(listed).describe('Nothing to do: the provider is asked again.'),
});
export type UnresolvedList = z.infer<typeof UnresolvedList>;

const EVIDENCE_MAX = 1000;
const EMAIL = /[^\s@]@[^\s@]/;

export const ResolveRequest = z
  .strictObject(
    {
      outcome: requiredChoice(['approved', 'declined']),
      evidence: z
        .string({ error: requiredOr('must be a string') })
        .min(1, { error: REQUIRED, abort: true })
        .refine((text) => text.trim() !== '' && text.length <= EVIDENCE_MAX, {
          error: `must be 1 to ${EVIDENCE_MAX} characters`,
          // Searching a text of a whole body would take seconds.
          abort: true,
        })
        .refine((text) => !holdsLongNumber(text), {
          error: 'must not hold a run of 12 digits or more: no card number may be kept',
        })
        .refine((text) => !EMAIL.test(text), {
          error: 'must not hold an e-mail address: events are kept for ever',
        })
        .meta({
          minLength: 1,
          maxLength: EVIDENCE_MAX,
          description: 'Where the outcome is known from; recorded.',
        }),
      operationId: z
        .string({ error: 'must be a string' })
        .optional()
        .describe('Which operation, where several are unresolved.'),
      withoutFence: z
        .boolean({ error: 'must be true or false' })
        .optional()
        .describe('Declined although the provider does not promise never to carry it out.'),
    },
    { error: 'the body must hold outcome, evidence and at most operationId and withoutFence' },
  )
  .meta({ id: 'ResolveRequest' });

const taken = {
  paymentId: z.string(),
  operation,
  operationId: z.string(),
  amountMinor,
  status: z.string(),
  revision: z.int().min(0),
};

export const ResolutionBody = named('Resolution', {
  ...taken,
  outcome: z.enum(['APPROVED', 'DECLINED', 'NOT_SENT', 'FENCED']),
  confirmed: z
    .boolean()
    .describe(
      'False while the provider is asked again, until it says the same; true if a contradiction was ended.',
    ),
});
export type ResolutionBody = z.infer<typeof ResolutionBody>;

export const ResolutionRequested = named('ResolutionRequested', {
  ...taken,
  outcome: z.enum(['APPROVED', 'DECLINED']),
  request,
});
export type ResolutionRequested = z.infer<typeof ResolutionRequested>;

export const ServiceSettings = named('ServiceSettings', {
  version: z.string(),
  mode: z.enum(['embedded', 'command-api', 'query-api', 'projector', 'provider']),
  dataFolder: z.string().describe('Where an embedded service keeps its files.'),
  provider: z
    .object({ simulated: z.boolean(), address: z.string().nullable() })
    .describe('Simulated: it moves no money.'),
  warnings: z.array(z.string()),
  troubles: z.array(z.string()).describe('What alerts tell later, such as a full disk.'),
  settings: z.array(
    z.object({
      name: z.string(),
      value: z.string().describe('In effect; a secret is hidden.'),
      origin: z.enum(['environment', 'file', 'default']),
    }),
  ),
});
export type ServiceSettings = z.infer<typeof ServiceSettings>;

export const serviceSettings = (config: Config, troubles: string[]): ServiceSettings => {
  const { mode, dataDir, provider, stripe, warnings, effective } = config;
  const url = stripe?.url ?? provider.url;
  const address = url === undefined ? null : withoutSecrets(url);
  return {
    version: VERSION,
    mode,
    dataFolder: dataDir,
    provider: { simulated: address === null, address },
    warnings: [...warnings],
    troubles,
    settings: [...effective],
  };
};
