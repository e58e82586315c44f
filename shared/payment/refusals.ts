/**
 * What a decision can be instead of events. The HTTP status and the message of the public codes
 * stand in shared/http/errors.ts.
 */
import type { Operation } from './state.ts';

/** Codes of the contract (interface, "Errors"). */
export type RefusalCode =
  | 'BUSINESS_RULE_VIOLATION'
  | 'CAPTURE_NOT_ALLOWED'
  | 'VOID_NOT_ALLOWED'
  | 'REFUND_NOT_ALLOWED';

export type Refused = { kind: 'refused'; code: RefusalCode; details: string[] };

/** An operation has no outcome yet and excludes this command: ask the provider, then decide again. */
export type Unresolved = { kind: 'unresolved'; operation: Operation };

/** The stream already begins with a payment: the id is taken. */
export type AlreadyExists = { kind: 'exists' };

/** An operation stands under the command's key already: this is its repeat (gaps §8). */
export type Repeated = { kind: 'repeated' };

export const refused = (code: RefusalCode, ...details: string[]): Refused => ({
  kind: 'refused',
  code,
  details,
});
