import { setImmediate as afterSockets } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { pause } from '../../runtime/back-off.ts';
import { closeUnused } from './raw-responses.ts';

const IDLE_CHECK_MS = 100;
/** Requests that were sent may still be on their way. */
const ARRIVED_MS = 100;
/** For the first request of a new connection. */
const UNUSED_GRACE_MS = 500;
const HARD_STOP_MS = 8_000;

/** Timers run before the sockets are read, this after. */
const untilRead = async (ms: number): Promise<void> => {
  await pause(ms);
  await afterSockets();
};

/**
 * Each whole request that was sent gets its response. For `drainMs` new ones are served as well, so that
 * a gateway finds out by readiness or `connection: close`; without it they are 503 at once. `hardStopMs`,
 * from now on, cuts off the rest.
 */
export const closeGracefully = async (
  app: FastifyInstance,
  { drainMs = 0, hardStopMs = HARD_STOP_MS } = {},
): Promise<void> => {
  const { lifecycle, server } = app;
  lifecycle.closing = true;
  lifecycle.refusing = drainMs === 0;
  const hardStop = setTimeout(() => server.closeAllConnections(), hardStopMs);
  if (drainMs > 0) await pause(drainMs);
  const startedAtMs = performance.now();
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
