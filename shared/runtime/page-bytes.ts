/**
 * Where a page of a list ends as it ends at its limit, in bytes of UTF-8: a client that does not read its
 * response keeps no more than this in memory (http/server/unread.ts).
 */
export const PAGE_BYTES_MAX = 262_144;
