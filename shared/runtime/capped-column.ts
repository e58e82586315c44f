/**
 * SQL for a column of numbers. node:sqlite throws at one beyond 2^53-1, which only tampering can have
 * written; capped, it breaks the chain or the check of its row instead, and that is reported.
 */
export const capped = (column: string): string =>
  `max(-${Number.MAX_SAFE_INTEGER}, min(${column}, ${Number.MAX_SAFE_INTEGER}))`;
