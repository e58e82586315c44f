import type { Minor } from '../../shared/payment/fields.ts';

/** Tests write amounts as numbers. */
export type Plain<T> = T extends Minor
  ? number
  : T extends object
    ? { [K in keyof T]: Plain<T[K]> }
    : T;
