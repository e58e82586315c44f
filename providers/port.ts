/**
 * The payment provider as the command side sees it (gaps §7, provider.md). The operation id is the
 * idempotency key: the same id never moves money twice, and is never inside a retry loop.
 */
import type { CardSecret, TokenCard } from '../shared/payment/card.ts';
import type { FinalOutcomeDetails, LaterResult } from '../shared/payment/commands.ts';
import type { PaymentDetails } from '../shared/payment/fields.ts';

export type ProviderOperationKind = 'AUTHORIZE' | 'SALE' | 'CAPTURE' | 'VOID' | 'REFUND';

/** `billing` and `consumer` are as the shopper gave them, for the bank to compare. */
export type CallDetails =
  | (Pick<
      PaymentDetails,
      'billing' | 'consumer' | 'descriptor' | 'merchantReference' | 'metadata'
    > & {
      kind: 'AUTHORIZE' | 'SALE';
      /** Number and CVV, or the token, live in memory for this one call. */
      card: CardSecret;
      /** As the token's description named it. */
      customer?: string | undefined;
      /** The merchant asks for the shopper's authentication where the card needs it (gaps §21). */
      authentication?: { returnUrl: string } | undefined;
      /** MERCHANT: no shopper is there. */
      initiatedBy?: 'CONSUMER' | 'MERCHANT' | undefined;
    })
  | ({ kind: 'CAPTURE' | 'VOID' | 'REFUND' } & Authorization);

/** For a follow-up; the reference is the provider's, see PaymentProviderOpened. */
export type Authorization = {
  authorizationId: string;
  authorizationReference?: string | undefined;
};

/** Minor units, from 1. */
export type OperationOrder = {
  operationId: string;
  paymentId: string;
  amount: number;
  currency: string;
} & CallDetails;
/** A merchant may have its own account at the provider. */
export type ProviderOperation = OperationOrder & { merchantId: string };
/** `provider` was sent it; absent where the log does not say (ADR-0247). */
type SentOperation = { merchantId: string; provider?: string | undefined };

export type Approved = Extract<FinalOutcomeDetails, { outcome: 'APPROVED' }>;
/** The provider's own code is verbatim, at most 64 of `A-Za-z0-9_.-`, without a long digit run. */
export type Declined = Extract<FinalOutcomeDetails, { outcome: 'DECLINED' }>;
/**
 * Only `unreachable`, no connection, counts for the circuit breaker; none is a decline of the card.
 * `not_opened`: the opened id was not stored. `too_late`: too little of the timeout was left. `stored_late`:
 * the intent. `token_used`: already, or without its customer. `fenced`: no earlier call of this id ran either.
 */
export type NotSentReason =
  | 'unreachable'
  | 'unauthorized'
  | 'forbidden'
  | 'rate_limited'
  | 'misconfigured'
  | 'not_opened'
  | 'too_late'
  | 'stored_late'
  | 'token_used'
  | 'fenced';
/**
 * This call moved no money, and never will. `byProvider`: the provider said so. Without a reason
 * either it is `unreachable`. `account`: the merchant's own.
 */
export type NotSent = Extract<FinalOutcomeDetails, { outcome: 'NOT_SENT' }> & {
  byProvider?: true;
  reason?: NotSentReason;
  account?: string;
};
/** The money may have moved. `reason` is one word for metrics and the log, or a NotSentReason. */
export type Unknown = { outcome: 'UNKNOWN'; reason: string; account?: string };
export const unknown = (reason: string): Unknown => ({ outcome: 'UNKNOWN', reason });
/** Card schemes keep an authorization for so long. */
export const AUTHORIZATION_MS_MAX = 7 * 86_400_000;
/** The provider still works on it (202). */
export const AT_WORK = 'at_work';
/** Another provider was sent it, so this one is not asked. */
export const OTHER_PROVIDER = 'other_provider';
/** The provider holds something else under this operation id. */
export const MISMATCH = 'mismatch';
export type Fenced = Extract<FinalOutcomeDetails, { outcome: 'FENCED' }>;
/** Decides nothing: only the fence does. */
export type NotFound = { outcome: 'NOT_FOUND' };

/**
 * The provider wants the shopper at `url`, until `expiresAt`, UTC, where it sets an end itself, and no
 * money has moved (gaps §21). The address holds a secret: it is in no event, log or error.
 */
export type ActionRequired = {
  outcome: 'ACTION_REQUIRED';
  url: string;
  expiresAt?: string | undefined;
};

export type ProviderOutcome = Approved | Declined | NotSent | ActionRequired | Unknown;
export type LookedUp = Approved | Declined | ActionRequired | NotFound | Unknown;

/** Keeps the opened id durably in the payment's stream. If it rejects (lost or ended), no money may move. */
export type KeepOpened = (reference: string) => Promise<void>;

export type OperationQuestion = {
  operationId: string;
  paymentId: string;
  kind: ProviderOperationKind;
  amount: number;
  currency: string;
  requestedAt: string;
  /**
   * What `opened` has kept. A driver that opens first has moved no money without it, as long as the
   * outcome is recorded at the revision that this was read at.
   */
  reference?: string | undefined;
  /** Set where the merchant asked for the shopper's authentication. */
  authentication?: object | true | undefined;
  /** Set where a shopper may have the provider's address. */
  waitsUntil?: string | undefined;
} & Partial<Authorization> &
  SentOperation;

/** `refunds`: approved. `observed`: made elsewhere, `refundId` is the provider's. */
export type PaymentQuestion = {
  paymentId: string;
  amount: number;
  currency: string;
  refunds: { operationId: string; amount: number }[];
  observed: { operationId: string; refundId: string }[];
} & Authorization &
  SentOperation;

/** As the provider has it now. */
export type KnownDispute = Extract<LaterResult, { kind: 'DISPUTE' }> & {
  paymentId: string;
  currency: string;
};

export type LaterResults = { outcome: 'FOUND'; results: LaterResult[] };

/** UNKNOWN where an account did not say: those of the others are there all the same. */
export type MadeElsewhere = {
  outcome: 'FOUND' | 'UNKNOWN';
  made: { paymentId: string; refundId?: string }[];
  reason?: string;
  account?: string | undefined;
};

export type NoticeOrigin = { merchantId?: string | undefined; account?: string | undefined };

export type LedgerEntry = {
  /** Where the ledger goes on. Opaque: only the driver reads it. */
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

/** NOT_FOUND where it knows no such token, or no tokens at all. `customer`: it is saved to this one there. */
export type TokenDescription =
  | ({ outcome: 'DESCRIBED'; customer?: string | undefined } & TokenCard)
  | { outcome: 'NOT_FOUND' }
  | Unknown;

/** The provider answers, but up to `cursor` its ledger's end is hidden behind what others made there. */
export class LedgerEndNotFound extends Error {
  readonly cursor: string;
  constructor(cursor: string) {
    super("the end of the provider's ledger was not found");
    this.cursor = cursor;
  }
}

export type Provider = {
  /** Asked before the payment is created. Never throws; ends within the provider's timeout. */
  describeToken(token: string, merchantId: string): Promise<TokenDescription>;
  /**
   * Carries it out once. A provider that opens something first gives its id to `opened` before it
   * moves money: a rejection of that is NOT_SENT. Never throws; ends within the timeout.
   */
  execute(operation: ProviderOperation, opened: KeepOpened): Promise<ProviderOutcome>;
  /** The recorded outcome. Never throws; ends within the timeout. */
  lookUp(question: OperationQuestion): Promise<LookedUp>;
  /** Fences it, also while a shopper is waited for; if it was carried out, gives its outcome. Never throws. */
  fence(question: OperationQuestion): Promise<Approved | Declined | Fenced | Unknown>;
  /**
   * Oldest first after a cursor, null for the start; `next` is null at the end. `since`, in UTC: only
   * entries of then or later, where the page says so. Stripe lists a capture or void at the time of its
   * authorization. Throws Error where it cannot be read.
   */
  ledger(after: string | null, limit: number, since?: string): Promise<LedgerPage>;
  /** The last page after a cursor, oldest first; none where the ledger ends there. Throws LedgerEndNotFound. */
  ledgerEnd(after: string | null): Promise<LedgerEntry[]>;
  /** Never throws; ends within the timeout. */
  laterResults(question: PaymentQuestion): Promise<LaterResults | Unknown>;
  /** Of its payments, those of the last year. Throws Error where they cannot be read. */
  disputes(): Promise<KnownDispute[]>;
  /**
   * Captures, cancels and refunds that were made elsewhere since then, and authorizations that ran out;
   * perhaps others too: a reason to ask about their payments. Never throws.
   */
  madeElsewhere(sinceMs: number): Promise<MadeElsewhere>;
  /** A notice may name nothing but `reference`. Never throws; ends within the timeout. */
  paymentOf(
    reference: string,
    origin: NoticeOrigin,
  ): Promise<{ outcome: 'FOUND'; paymentId: string } | NotFound | Unknown>;
  /** A reason to ask, nothing more. Left out where it gives none in this process. */
  onNotice?(listener: (paymentId: string) => void): void;
  authorizationMsMax: number;
  close(): Promise<void>;
};

/**
 * `declines`: it keeps no trace of some declines, so those are not missing in it. `since`: as it was
 * asked for; left out where the ledger is read from the start.
 */
export type LedgerPage = {
  entries: LedgerEntry[];
  next: string | null;
  declines?: 'not kept';
  since?: string | undefined;
};
