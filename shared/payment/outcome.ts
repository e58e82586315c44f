/** The outcomes of an operation (docs/glossary.md): one type for the rules, the provider and recovery. */
import type { FailureCode } from './payment-events.ts';

/**
 * APPROVED and DECLINED: the provider's decision. NOT_SENT: proven never to have reached the provider.
 * FENCED: the provider promised never to carry it out. UNKNOWN: the money may have moved, so no
 * outcome is recorded.
 */
export type Outcome = 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED' | 'UNKNOWN';

/** The outcomes that are stored. A stored outcome never changes. */
export type FinalOutcome = Exclude<Outcome, 'UNKNOWN'>;

/** A final outcome with the provider's details of it. */
export type FinalOutcomeDetails =
  | { outcome: 'APPROVED'; providerReference?: string | undefined }
  | { outcome: 'DECLINED'; failureCode: FailureCode; providerFailureCode?: string | undefined }
  | { outcome: 'NOT_SENT' }
  | { outcome: 'FENCED' };
