/**
 * The payment provider as the command side sees it (gaps §7, provider.md). The operation id
 * is the idempotency key: the same id again never moves money twice, and is never inside a retry
 * loop. Every driver keeps these promises; test/contract/provider asks each of them.
 */
import type { CardSecret } from '../../shared/payment/card.ts';
import type { FinalOutcomeDetails } from '../../shared/payment/outcome.ts';

export type ProviderOperationKind = 'AUTHORIZE' | 'SALE' | 'CAPTURE' | 'VOID' | 'REFUND';

/** What a provider call needs beside what its operation's intent says. */
export type CallDetails =
  | {
      kind: 'AUTHORIZE' | 'SALE';
      /** Number and CVV live in memory for this one call. */
      card: CardSecret;
      descriptor?: string | undefined;
    }
  /** `authorizationId` is the operation id of the AUTHORIZE or SALE. */
  | { kind: 'CAPTURE' | 'VOID' | 'REFUND'; authorizationId: string };

/** One operation to carry out. `amount` is in minor units of `currency`, from 1. */
export type ProviderOperation = {
  operationId: string;
  paymentId: string;
  amount: number;
  currency: string;
} & CallDetails;

export type Approved = Extract<FinalOutcomeDetails, { outcome: 'APPROVED' }>;
/** The provider's own code, verbatim, has at most 64 of `A-Za-z0-9_.-` and no long digit run. */
export type Declined = Extract<FinalOutcomeDetails, { outcome: 'DECLINED' }>;
/**
 * Proven never to be carried out: no money moved, none ever will. `byProvider` where the provider
 * itself said so, and so can be reached; absent where the call could not be sent.
 */
export type NotSent = Extract<FinalOutcomeDetails, { outcome: 'NOT_SENT' }> & { byProvider?: true };
/** Anything else: the money may have moved. `reason` is one word for metrics and the log. */
export type Unknown = { outcome: 'UNKNOWN'; reason: string };
/** The reason of an Unknown by which the provider says itself that it still works on it (202). */
export const AT_WORK = 'at_work';
/** From now on this operation id is never carried out. */
export type Fenced = Extract<FinalOutcomeDetails, { outcome: 'FENCED' }>;
/** Nothing has been carried out so far. Decides nothing by itself: only the fence does. */
export type NotFound = { outcome: 'NOT_FOUND' };

export type ProviderOutcome = Approved | Declined | NotSent | Unknown;

/** What an operation was for, so that an answer about it can be checked against it. */
export type OperationQuestion = { operationId: string; amount: number; currency: string };

/** A line of the provider's ledger. */
export type LedgerEntry = {
  /** From 1, in the order in which operations were carried out. */
  sequence: number;
  operationId: string;
  kind: ProviderOperationKind;
  paymentId: string;
  outcome: 'APPROVED' | 'DECLINED';
  amount: number;
  currency: string;
  failureCode?: string | undefined;
  providerFailureCode?: string | undefined;
  providerReference: string;
};

export type Provider = {
  /** Carries the operation out once. Never throws; ends within the provider's timeout. */
  execute(operation: ProviderOperation): Promise<ProviderOutcome>;
  /** The recorded outcome. Never throws; ends within the provider's timeout. */
  lookUp(question: OperationQuestion): Promise<Approved | Declined | NotFound | Unknown>;
  /** Fences the operation unless it was carried out already; then its outcome. Never throws. */
  fence(question: OperationQuestion): Promise<Approved | Declined | Fenced | Unknown>;
  /** The ledger after a sequence number, oldest first; `next` to go on from, or null at the end. */
  ledger(after: number, limit: number): Promise<{ entries: LedgerEntry[]; next: number | null }>;
  close(): Promise<void>;
};
