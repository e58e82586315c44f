/** Of a list's page: it bounds an unread response (http/server/shares.ts). */
export const PAGE_BYTES_MAX = 262_144;
