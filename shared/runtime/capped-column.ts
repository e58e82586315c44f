/**
 * SQL for a column of numbers: node:sqlite throws at one beyond 2^53-1, which only somebody else can have
 * written. Such a number must not stop the read: capped, it breaks the chain or the check of its row, and
 * that is reported.
 */
export const capped = (column: string): string =>
  `max(-${Number.MAX_SAFE_INTEGER}, min(${column}, ${Number.MAX_SAFE_INTEGER}))`;
