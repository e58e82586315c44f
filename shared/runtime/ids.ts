/** The ids this service makes: all of them sort by the time they were made. */
import { randomBytes } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import { v7 } from 'uuid';

const POOL_BYTES = 4096;
let pool = randomBytes(POOL_BYTES);
let used = 0;

/** A fraction below 1, from random bytes drawn 4 kB at a time: a call a byte costs 2 us each. */
const randomFraction = (): number => {
  if (used === POOL_BYTES) {
    pool = randomBytes(POOL_BYTES);
    used = 0;
  }
  return (pool[used++] ?? 0) / 256;
};

/** A ULID: 26 characters of Crockford base 32, later ones greater within this process. */
export const newUlid: () => string = monotonicFactory(randomFraction);

/** `pay_` and a ULID (gaps §2). */
export const newPaymentId = (): string => `pay_${newUlid()}`;

/** The id of one operation at the provider; its last 26 characters name the transaction too. */
export const newOperationId = (): string => `op_${newUlid()}`;

/** The id of one event: a UUID of version 7. */
export const newEventId = (): string => v7();
