/**
 * The payment provider as the command side sees it (gaps §7, provider.md). The operation id
 * is the idempotency key: the same id again never moves money twice, and is never inside a retry
 * loop. Every driver keeps these promises; test/contract/provider asks each of them.
 */
import type { CardSecret, TokenCard } from '../../shared/payment/card.ts';
import type { FinalOutcomeDetails, LaterResult } from '../../shared/payment/outcome.ts';

export type ProviderOperationKind = 'AUTHORIZE' | 'SALE' | 'CAPTURE' | 'VOID' | 'REFUND';

/** What a provider call needs beside what its operation's intent says. */
export type CallDetails =
  | {
      kind: 'AUTHORIZE' | 'SALE';
      /** Number and CVV, or the token, live in memory for this one call. */
      card: CardSecret;
      descriptor?: string | undefined;
    }
  | ({ kind: 'CAPTURE' | 'VOID' | 'REFUND' } & Authorization);

/** The AUTHORIZE or SALE that a capture, void or refund belongs to. */
export type Authorization = {
  /** Its operation id. */
  authorizationId: string;
  /** What the provider calls it, as far as the log knows: see PaymentProviderOpened. */
  authorizationReference?: string | undefined;
};

/** What is to be carried out. `amount` is in minor units of `currency`, from 1. */
export type OperationOrder = {
  operationId: string;
  paymentId: string;
  amount: number;
  currency: string;
} & CallDetails;
/** Whose payment it is: a merchant may have an account of its own at the provider. */
type OfMerchant = { merchantId: string };
/** The name of the provider that was sent it; absent where the log does not say (ADR-0247). */
type SentTo = { provider?: string | undefined };
/** One operation to carry out. */
export type ProviderOperation = OperationOrder & OfMerchant;

export type Approved = Extract<FinalOutcomeDetails, { outcome: 'APPROVED' }>;
/** The provider's own code, verbatim, has at most 64 of `A-Za-z0-9_.-` and no long digit run. */
export type Declined = Extract<FinalOutcomeDetails, { outcome: 'DECLINED' }>;
/**
 * Why nothing was carried out. `unreachable`: no connection was made, the one that counts for the
 * circuit breaker. `unauthorized`, `forbidden`, `rate_limited`, `misconfigured`: the provider rejects
 * the key, its permission, the account's rate, or what the account is not set up for; nothing of it
 * is a decline of the card. `not_opened`: what it opened could not be stored. `too_late`: too little
 * of the timeout was left. `fenced`: the call met a fence, so no earlier call under this id was carried
 * out either.
 */
export type NotSentReason =
  | 'unreachable'
  | 'unauthorized'
  | 'forbidden'
  | 'rate_limited'
  | 'misconfigured'
  | 'not_opened'
  | 'too_late'
  | 'fenced';
/**
 * This call moved no money, and never will. `byProvider` where the provider
 * itself said so, and so can be reached. Without it and without a `reason` it is `unreachable`.
 * `account` names a merchant's own account that it was said of, for the log.
 */
export type NotSent = Extract<FinalOutcomeDetails, { outcome: 'NOT_SENT' }> & {
  byProvider?: true;
  reason?: NotSentReason;
  account?: string;
};
/**
 * Anything else: the money may have moved. `reason` is one word for metrics and the log; of a
 * question one of NotSentReason where it applies. `account` as in NotSent.
 */
export type Unknown = { outcome: 'UNKNOWN'; reason: string; account?: string };
/** The reason of an Unknown by which the provider says itself that it still works on it (202). */
export const AT_WORK = 'at_work';
/** The reason of an Unknown where another provider was sent it, so that this one is not asked. */
export const OTHER_PROVIDER = 'other_provider';
/** The reason of an Unknown where the provider holds something else under this operation id. */
export const MISMATCH = 'mismatch';
/** From now on this operation id is never carried out. */
export type Fenced = Extract<FinalOutcomeDetails, { outcome: 'FENCED' }>;
/** Nothing has been carried out so far. Decides nothing by itself: only the fence does. */
export type NotFound = { outcome: 'NOT_FOUND' };

export type ProviderOutcome = Approved | Declined | NotSent | Unknown;

/**
 * Keeps the provider's own id of what it has opened for an operation, durably, in the payment's
 * stream. Resolves once it is kept. Rejects where it cannot be, or where it is not known whether it
 * is, and where the operation has its outcome already: then nothing that moves money may be sent.
 */
export type Opened = (reference: string) => Promise<void>;

/**
 * What an operation was for, so that an answer about it can be checked against it, and found by what
 * the log knows of it. `authorizationId` and `authorizationReference` are absent for AUTHORIZE and
 * SALE.
 */
export type OperationQuestion = {
  operationId: string;
  paymentId: string;
  kind: ProviderOperationKind;
  amount: number;
  currency: string;
  /** The time of its intent, RFC 3339. */
  requestedAt: string;
  /**
   * What `opened` has kept. Absent: the provider was never told to move money where its driver opens
   * first, as long as the outcome is recorded at the revision at which this was read.
   */
  reference?: string | undefined;
} & Partial<Authorization> &
  OfMerchant &
  SentTo;

/**
 * A payment whose later results are asked for. `refunds` are those that were approved; `observed` are
 * those that were made elsewhere and have been recorded: `refundId` is the provider's, the operation
 * id that of the record.
 */
export type PaymentQuestion = {
  paymentId: string;
  amount: number;
  currency: string;
  refunds: { operationId: string; amount: number }[];
  observed: { operationId: string; refundId: string }[];
} & Authorization &
  OfMerchant &
  SentTo;

/** All that has become of a payment as of now, in the order in which it came. */
export type LaterResults = { outcome: 'FOUND'; results: LaterResult[] };

/**
 * Where a notice of the provider's comes from: the merchant whose own secret signed it, and the
 * account that it names.
 */
export type NoticeOrigin = { merchantId?: string | undefined; account?: string | undefined };

/** A line of the provider's ledger. */
export type LedgerEntry = {
  /** Where the ledger goes on after this entry. Opaque: what it says is the driver's alone. */
  cursor: string;
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

/** What a provider says of a token; NOT_FOUND where it knows none of that name, or no tokens at all. */
export type TokenDescription =
  | ({ outcome: 'DESCRIBED' } & TokenCard)
  | { outcome: 'NOT_FOUND' }
  | Unknown;

export type Provider = {
  /**
   * Which card a merchant's token stands for, asked before the payment is created. Never throws; ends
   * within the provider's timeout.
   */
  describeToken(token: string, merchantId: string): Promise<TokenDescription>;
  /**
   * Carries the operation out once. A provider that opens something before it moves money gives its
   * id to `opened` in between: a rejection of `opened` is NOT_SENT. Never throws; ends within the
   * provider's timeout, `opened` included.
   */
  execute(operation: ProviderOperation, opened: Opened): Promise<ProviderOutcome>;
  /** The recorded outcome. Never throws; ends within the provider's timeout. */
  lookUp(question: OperationQuestion): Promise<Approved | Declined | NotFound | Unknown>;
  /** Fences the operation unless it was carried out already; then its outcome. Never throws. */
  fence(question: OperationQuestion): Promise<Approved | Declined | Fenced | Unknown>;
  /** The ledger after a cursor, oldest first, null for its start; `next` is null at the end. */
  ledger(after: string | null, limit: number): Promise<LedgerPage>;
  /** The last entries after a cursor, oldest first: a page of them, none where it ends there. */
  ledgerEnd(after: string | null): Promise<LedgerEntry[]>;
  /** What has become of a payment since. Never throws; ends within the provider's timeout. */
  laterResults(question: PaymentQuestion): Promise<LaterResults | Unknown>;
  /**
   * The payment that the provider opened `reference` for: a notice may name nothing else. NOT_FOUND
   * where that is none of this service's. Never throws; ends within the provider's timeout.
   */
  paymentOf(
    reference: string,
    origin: NoticeOrigin,
  ): Promise<{ outcome: 'FOUND'; paymentId: string } | NotFound | Unknown>;
  /** Calls the listener when something may have become of a payment: a reason to ask, nothing more. */
  onNotice(listener: (paymentId: string) => void): void;
  /** How long an authorization lives here, in milliseconds; an older one is asked about. */
  authorizationMsMax: number;
  close(): Promise<void>;
};

/**
 * A page of the ledger; `next` is the cursor to go on from. `declines` where the provider keeps no
 * trace of some of what it declined: such an operation is not missing there.
 */
export type LedgerPage = { entries: LedgerEntry[]; next: string | null; declines?: 'not kept' };
