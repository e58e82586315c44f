import type { PaymentEventType } from '../shared/payment/events.ts';
import type { AuditEvent } from './contract.ts';

type Data = AuditEvent['data'];

const NEVER_CARRIED_OUT: readonly unknown[] = ['NOT_SENT', 'FENCED'];

const given = (text: unknown, as: (text: unknown) => string): string[] =>
  text === undefined ? [] : [as(text)];

/** The outcome that operators gave in place of the provider (gaps §16). */
export const byHand = (resolution: unknown): string => {
  const { evidence, requestedBy, requestEvidence } = Object(resolution);
  const request = [
    ...given(requestedBy, (who) => `requested by ${who}`),
    ...given(requestEvidence, (text) => `"${text}"`),
  ].join(': ');
  return `by hand: "${evidence}"${request === '' ? '' : `, ${request}`}`;
};

const outcomeOf = ({ outcome, evidence, failureCode, resolution }: Data): string[] => {
  if (NEVER_CARRIED_OUT.includes(outcome)) return [`never carried out: ${outcome}`];
  if (evidence !== undefined) return [`by hand: ${outcome}, "${evidence}"`];
  const isSaid = failureCode === undefined && resolution === undefined;
  return isSaid ? given(outcome, (said) => `the provider says ${said}`) : [];
};

const failureIn = ({ failureCode, providerFailureCode }: Data): string[] => {
  const own = given(providerFailureCode, (code) => ` (${code})`).join('');
  return given(failureCode, (code) => `${code}${own}`);
};

/** Events without a request of a merchant (gaps §15). */
const LATER: Partial<Record<PaymentEventType, (data: Data) => string[]>> = {
  PaymentProviderOpened: ({ providerReference }) => [
    `opened at the provider as ${providerReference}; no money has moved by it`,
  ],
  PaymentAuthenticationRequested: ({ expiresAt }) => [
    `the provider waits for the shopper until ${expiresAt}; no money has moved`,
  ],
  PaymentAuthorizationExpiring: ({ expiresAt }) => [
    `the authorization ends ${expiresAt}; no money has moved`,
  ],
  PaymentAuthorizationExpired: () => ['the provider let the authorization run out'],
  PaymentCaptureObserved: ({ providerReference }) => [
    `captured elsewhere, on ${providerReference} at the provider`,
  ],
  PaymentVoidObserved: ({ providerReference }) => [
    `canceled elsewhere, on ${providerReference} at the provider`,
  ],
  PaymentRefundFailed: (data) => [
    ...failureIn(data),
    'the refund came back: its amount can be refunded again',
  ],
  PaymentRefundObserved: ({ refundId }) => [`refunded elsewhere, as ${refundId} at the provider`],
  PaymentDisputed: ({ disputeId, reason }) => [
    `the cardholder disputes it: ${reason}, dispute ${disputeId}; nothing is refunded while it is open`,
  ],
  PaymentErasureRequested: ({ reason, ticket, requestedBy }) => [
    `${requestedBy} requests that names and addresses are erased: ${reason}, ${ticket}`,
  ],
  PaymentErasureHeld: ({ ticket }) => [`nothing is erased while this holds: ${ticket}`],
  PaymentPersonalDataErased: ({ reason, ticket, requestedBy, keys }) => [
    `names, addresses and free texts erased for good: ${reason}, ${ticket}, requested by ${requestedBy}; keys of boxes: ${Object(keys).length}`,
  ],
  PaymentDisputeClosed: ({ disputeId, status }) => [
    `dispute ${disputeId} was ${status === 'WON' ? 'won: the money stays' : 'lost: the money is gone'}`,
  ],
};

export const whyOf = ({ type, data }: Pick<AuditEvent, 'type' | 'data'>): string => {
  const later = LATER[type as PaymentEventType];
  const words = later?.(data) ?? [
    ...failureIn(data),
    ...outcomeOf(data),
    ...given(
      typeof data.reason === 'string' ? data.reason : undefined,
      (text) => `reason: ${text}`,
    ),
    ...given(data.resolution, byHand),
  ];
  return words.join('; ');
};
