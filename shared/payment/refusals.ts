/**
 * The decisions that yield no events. shared/http/errors.ts has the HTTP status and the message of
 * each public code.
 */
import type { Operation } from './payment-state.ts';

/** The code of each refused change (interface, "Errors"). */
export const NOT_ALLOWED = {
  capture: 'CAPTURE_NOT_ALLOWED',
  void: 'VOID_NOT_ALLOWED',
  refund: 'REFUND_NOT_ALLOWED',
} as const;

type RefusalCode = 'BUSINESS_RULE_VIOLATION' | (typeof NOT_ALLOWED)[keyof typeof NOT_ALLOWED];

/** The rules of payments do not allow the command; `details` says why, for the merchant. */
export type Refused = { kind: 'refused'; code: RefusalCode; details: string[] };

/** An unresolved operation excludes this command: find out its outcome, then decide again. */
export type Unresolved = { kind: 'unresolved'; operation: Operation };

/** The payment id is taken: another create has made this stream. */
export type AlreadyExists = { kind: 'exists' };

/** An operation with the command's idempotency key exists: the command is its repeat (gaps §8). */
export type Repeated = { kind: 'repeated' };

/** The payment was made at `provider`, and another one is set: nothing may be sent there (ADR-0247). */
export type AtOtherProvider = { kind: 'other provider'; provider: string };

/** A refusal with its reasons. */
export const refused = (code: RefusalCode, ...details: string[]): Refused => ({
  kind: 'refused',
  code,
  details,
});
