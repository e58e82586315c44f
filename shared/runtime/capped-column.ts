/**
 * node:sqlite throws at a number beyond 2^53-1, which only tampering writes; capped, it breaks the
 * chain or its row's check, which is reported.
 */
export const capped = (column: string): string =>
  `max(-${Number.MAX_SAFE_INTEGER}, min(${column}, ${Number.MAX_SAFE_INTEGER}))`;
