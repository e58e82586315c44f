import type { FailureData } from './payment-events.ts';

/**
 * APPROVED and DECLINED: the provider's decision. NOT_SENT: proven never to have reached the provider.
 * FENCED: the provider promised never to carry it out. UNKNOWN: the money may have moved.
 */
export type Outcome = 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED' | 'UNKNOWN';

/** The outcomes that are stored. A stored outcome never changes. */
export type FinalOutcome = Exclude<Outcome, 'UNKNOWN'>;

/**
 * A later result of a payment, as the provider says (gaps §15). Amounts in minor units; ids and codes
 * are the provider's, of at most 64 of `A-Za-z0-9_.-`.
 */
export type LaterResult =
  | { kind: 'AUTHORIZATION_EXPIRED' }
  /** Captured or canceled elsewhere, under no operation id of ours (gaps §15). */
  | { kind: 'CAPTURE_OBSERVED'; reference: string; amount: number }
  | { kind: 'VOID_OBSERVED'; reference: string }
  /** The id of one of our refunds. */
  | ({ kind: 'REFUND_FAILED'; operationId: string } & FailureData)
  /** Made elsewhere, under no operation id of ours. */
  | { kind: 'REFUND_OBSERVED'; refundId: string; amount: number }
  | {
      kind: 'DISPUTE';
      disputeId: string;
      amount: number;
      reason: string;
      status: 'OPEN' | 'WON' | 'LOST';
    };

/** `authorizationExpiresAt`: of an authorization; UTC, with milliseconds (gaps §24). */
export type FinalOutcomeDetails =
  | {
      outcome: 'APPROVED';
      providerReference?: string | undefined;
      authorizationExpiresAt?: string | undefined;
    }
  | ({ outcome: 'DECLINED' } & FailureData)
  | { outcome: 'NOT_SENT' }
  | { outcome: 'FENCED' };
