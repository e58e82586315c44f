/** What came of an operation (docs/glossary.md): one type for the rules, the provider and recovery. */
import type { FailureCode } from './payment-events.ts';

/**
 * APPROVED and DECLINED: the provider's word. NOT_SENT: proven never to have reached the provider.
 * FENCED: the provider will never carry it out. UNKNOWN: the money may have moved, so that nothing
 * is recorded.
 */
export type Outcome = 'APPROVED' | 'DECLINED' | 'NOT_SENT' | 'FENCED' | 'UNKNOWN';

/** The outcomes that are stored, each of them for good. */
export type FinalOutcome = Exclude<Outcome, 'UNKNOWN'>;

/** A final outcome with what the provider said of it. */
export type FinalOutcomeDetails =
  | { outcome: 'APPROVED'; providerReference?: string | undefined }
  | { outcome: 'DECLINED'; failureCode: FailureCode; providerFailureCode?: string | undefined }
  | { outcome: 'NOT_SENT' }
  | { outcome: 'FENCED' };
