/** Closing a server so that whoever has sent a request before gets a response. */
import { setImmediate as afterSockets } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { pause } from '../../runtime/back-off.ts';
import { closeUnused } from './raw-responses.ts';

const IDLE_CHECK_MS = 100;
/** How long connections are read on before idle ones are closed: what was sent before is on its way. */
const ARRIVED_MS = 100;
/** How long a connection that has sent nothing yet may still do so. */
const UNUSED_GRACE_MS = 500;
const HARD_STOP_MS = 8_000;

/**
 * Resolves once everything that had arrived on the connections has been read, also where the event
 * loop was busy until now: timers come before the sockets are read, and this comes after.
 */
const untilRead = async (ms: number): Promise<void> => {
  await pause(ms);
  await afterSockets();
};

/**
 * Stops taking requests, lets those in flight end, and resolves when every connection is closed;
 * after `hardStopMs` the rest is cut off. Whoever has sent a whole request before gets a response:
 * its own, or 503. Kept-alive connections alone would hold it for a minute.
 */
export const closeGracefully = async (
  app: FastifyInstance,
  hardStopMs: number = HARD_STOP_MS,
): Promise<void> => {
  const { lifecycle, server } = app;
  lifecycle.closing = true;
  const startedAtMs = performance.now();
  const hardStop = setTimeout(() => server.closeAllConnections(), hardStopMs);
  await untilRead(ARRIVED_MS);
  const closeIdle = setInterval(async () => {
    await afterSockets();
    server.closeIdleConnections();
    if (performance.now() - startedAtMs > UNUSED_GRACE_MS) closeUnused(server);
  }, IDLE_CHECK_MS);
  try {
    await app.close();
  } finally {
    clearInterval(closeIdle);
    clearTimeout(hardStop);
  }
};
