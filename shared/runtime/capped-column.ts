/** node:sqlite throws beyond 2^53-1, which only tampering writes; capped, it breaks the check. */
export const capped = (column: string): string =>
  `max(-${Number.MAX_SAFE_INTEGER}, min(${column}, ${Number.MAX_SAFE_INTEGER}))`;
