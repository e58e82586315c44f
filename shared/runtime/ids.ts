/** The ids that this service makes: all of them sort by the time they were made (ADR-0096). */
import { v7 } from 'uuid';
import { crockford } from './crockford.ts';

const UUID_BYTES = 16;
const ULID_CHARACTERS = 26;
/** 26 characters have 130 bits, a UUID has 128. */
const LEADING_ZERO_BITS = 2;

const bytes = new Uint8Array(UUID_BYTES);

/**
 * A UUID of version 7 in the form of a ULID: 26 characters of Crockford base 32, the first ten of
 * them the milliseconds. Each is greater than all that this process made before.
 */
export const newUlid = (): string =>
  crockford(v7(undefined, bytes), ULID_CHARACTERS, LEADING_ZERO_BITS);

/** `pay_` and a ULID (gaps §2). */
export const newPaymentId = (): string => `pay_${newUlid()}`;

/** The id of one operation at the provider; its last 26 characters name the transaction too. */
export const newOperationId = (): string => `op_${newUlid()}`;

/** The id of one event: a UUID of version 7. */
export const newEventId = (): string => v7();
