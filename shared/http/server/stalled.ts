/**
 * A client that does not read its response keeps it in memory, and needs no token for the largest ones:
 * the pages and the metrics. Node waits for it without end.
 */
import { Socket } from 'node:net';

/** Of a shorter response everything is in the kernel's buffers at once. */
const TAKEN_AT_ONCE_BYTES = 16_384;
/** The same time as for a stream (streams.ts). */
const STALLED_MS = 30_000;

/**
 * Call it before a response of this length is sent: the connection is closed once the client has taken
 * nothing of it for `stalledMs`. Node sets its own time-outs again when the response has been taken.
 * A request that was injected (`app.inject`) has no connection.
 */
export const letGoIfStalled = (
  socket: object,
  bytes: number,
  stalledMs: number = STALLED_MS,
): void => {
  // seeded bug: stalled-client
  if (bytes > TAKEN_AT_ONCE_BYTES && socket instanceof Socket) socket.setTimeout(stalledMs);
};
