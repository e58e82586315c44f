/** Commands to a payment. Deciding stays pure: ids arrive in them; they hold the masked card. */
import type { CardBrand } from './card.ts';
import type { EventData } from './events.ts';
import type { Dispute, FailureData, Minor, Resolution } from './fields.ts';
import type { Recognised } from './state.ts';

/** A provider's later result (gaps §15). Amounts: minor units. Its ids, codes: up to 64 of `A-Za-z0-9_.-`. */
export type LaterResult =
  | { kind: 'AUTHORIZATION_EXPIRED' }
  /** Captured or canceled elsewhere, under no operation id of ours (gaps §15). */
  | { kind: 'CAPTURE_OBSERVED'; reference: string; amount: Minor }
  | { kind: 'VOID_OBSERVED'; reference: string }
  /** The id of one of our refunds. */
  | ({ kind: 'REFUND_FAILED'; operationId: string } & FailureData)
  /** Made elsewhere, under no operation id of ours. */
  | { kind: 'REFUND_OBSERVED'; refundId: string; amount: Minor }
  | ({ kind: 'DISPUTE'; disputeId: string } & Pick<Dispute, 'amount' | 'reason' | 'status'>);

/**
 * A stored outcome never changes. APPROVED, DECLINED: the provider's decision. NOT_SENT: proven never to have
 * reached it. FENCED: it promised never to carry it out. `authorizationExpiresAt`: UTC, with ms (gaps §24).
 */
export type FinalOutcomeDetails =
  | {
      outcome: 'APPROVED';
      providerReference?: string | undefined;
      authorizationExpiresAt?: string | undefined;
    }
  | ({ outcome: 'DECLINED' } & FailureData)
  | { outcome: 'NOT_SENT' }
  | { outcome: 'FENCED' };

/** From 1; 'too large' for one above 2^53-1 (gaps §3). */
export type RequestedAmount = Minor | 'too large';

/** What a merchant may do (gaps §3); `acceptedBrands` absent means all, unknown ones too. */
export type MerchantRules = {
  /** Minor units. */
  maxAmount: number;
  acceptedBrands?: readonly CardBrand[] | undefined;
  /** Where unique it names one payment that is not FAILED (gaps §8). */
  merchantReference?: 'allow' | 'unique' | undefined;
};

/**
 * The names of the provider that is set: the first one is stored with an intent, the others mean the
 * same one in older events. Empty: nothing is stored or compared, for a decision that is only explained.
 */
type ToProvider = { providers: readonly string[] };

export type CreateCommand = ToProvider &
  Recognised &
  Omit<EventData<'PaymentCreated'>, 'amount' | 'provider'> & {
    kind: 'create';
    amount: RequestedAmount;
    /** Of the card number, whatever brand the request names. */
    numberBrand: CardBrand | undefined;
    rules: MerchantRules;
  };

/** An omitted amount is the whole authorized amount, or all that is left to refund (gaps §5). */
export type ChangeCommand = ToProvider &
  Recognised & {
    kind: 'capture' | 'void' | 'refund';
    operationId: string;
    amount?: RequestedAmount | undefined;
    reason?: EventData<'PaymentRefundRequested'>['reason'];
    /** Its create and those that failed included (gaps §18). */
    operationsMax: number;
  };

/** Keeps what the provider opened for a create without an outcome, before it is told to move money. */
export type OpenCommand = { kind: 'open'; operationId: string; reference: string };

/** Keeps that the provider waits for the shopper of a create, until `expiresAt` (gaps §21). */
export type AuthenticateCommand = { kind: 'authenticate'; operationId: string; expiresAt: string };

/** Recorded once. `operationId`: new for a refund made elsewhere. AUTHORIZATION_EXPIRING is ours (gaps §24). */
export type LaterCommand = {
  kind: 'later';
  operationId: string;
  result: LaterResult | { kind: 'AUTHORIZATION_EXPIRING' };
};

/** Erases texts of a person (gaps §19). `operationId` names no operation. */
export type EraseCommand = Omit<EventData<'PaymentErasureRequested'>, 'requestedBy'> & {
  kind: 'erase';
  operationId: string;
  actor: string;
  /** Wall clock. */
  atMs: number;
  /** Persons who have to say so. */
  approvers: number;
  /** Since the payment changed last. */
  holdDays: number;
};

/** Forbids erasures, or allows them again: without a ticket. */
export type HoldCommand = { kind: 'hold'; operationId: string; ticket: string | undefined };

/** Records the provider's outcome or a proven one; `resolution` where an operator resolved it by hand. */
export type RecordCommand = {
  kind: 'record';
  operationId: string;
  /** The operation's reference that the outcome was judged on: a fence without it is none (ADR-0200). */
  judgedReference?: string | undefined;
  resolution?: Resolution;
} & FinalOutcomeDetails;

/** A request for an outcome, or another operator's approval of it (gaps §16). `atMs`: wall clock. */
export type ResolveCommand = {
  kind: 'resolve';
  operationId: string;
  outcome: 'APPROVED' | 'DECLINED';
  evidence: string;
  withoutFence: boolean;
  actor: string;
  atMs: number;
};

/** The provider's final outcome of an operation that was resolved by hand. */
export type ConfirmCommand = { kind: 'confirm'; operationId: string } & FinalOutcomeDetails;

export type ResolutionCommand = ResolveCommand | ConfirmCommand;

export type Command =
  | CreateCommand
  | ChangeCommand
  | OpenCommand
  | AuthenticateCommand
  | RecordCommand
  | ResolutionCommand
  | LaterCommand
  | EraseCommand
  | HoldCommand;
