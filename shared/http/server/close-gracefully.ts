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

/** Each whole request that was sent gets its response or 503; `hardStopMs` cuts off the rest. */
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
