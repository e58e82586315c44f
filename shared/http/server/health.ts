import { setImmediate as afterSockets } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import type { ReadModels } from '../../read-models/port.ts';
import { pause } from '../../runtime/back-off.ts';
import { reasonOf } from '../../runtime/error-text.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { VERSION } from '../../runtime/version.ts';
import { JSON_TYPE, messageOf, RETRY_LATER, UNAVAILABLE } from '../errors.ts';
import { closeUnused } from './raw-responses.ts';

export type EngineState = { state: string; [more: string]: string | number | boolean };

type Readiness = { ready: boolean; engines: Readonly<Record<string, EngineState>> };

export const engineState = async (
  ping: () => Promise<unknown>,
  more: { [name: string]: string | number | boolean } = {},
): Promise<EngineState> => {
  try {
    await ping();
    return { state: 'up', ...more };
  } catch (error) {
    return { state: 'down', reason: reasonOf(error), ...more };
  }
};

export const enginesState = async (
  ping: () => Promise<void>,
  readModels: Pick<ReadModels, 'checkpoint'>,
): Promise<{ eventStore: EngineState; readModels: EngineState }> => {
  const [eventStore, state] = await Promise.all([
    engineState(ping),
    engineState(() => readModels.checkpoint()),
  ]);
  return { eventStore, readModels: state };
};

type HealthOptions = {
  /** Must end within a second or two by itself; a throw counts as not ready. */
  ready: () => Promise<Readiness>;
  metrics: Metrics;
};

const notReadyBody = (engines: Readiness['engines']): string =>
  JSON.stringify({
    error: 'SERVICE_UNAVAILABLE',
    message: messageOf('SERVICE_UNAVAILABLE'),
    details: Object.entries(engines).map(([name, { state }]) => `${name} is ${state}`),
    timestamp: new Date().toISOString(),
    status: 'not ready',
    engines,
  });

export const WITH_HEAD = { exposeHeadRoute: true } as const;

export const registerHealth = (app: FastifyInstance, { ready, metrics }: HealthOptions): void => {
  app.get('/health/live', WITH_HEAD, (_request, reply) => {
    reply.type(JSON_TYPE).send(JSON.stringify({ status: 'live', version: VERSION }));
  });
  app.get('/health/ready', WITH_HEAD, async (_request, reply) => {
    const { ready: isReady, engines } = await ready().catch(() => ({ ready: false, engines: {} }));
    reply.type(JSON_TYPE);
    if (isReady) return reply.send(JSON.stringify({ status: 'ready', engines }));
    reply.code(UNAVAILABLE).headers(RETRY_LATER);
    return reply.send(notReadyBody(engines));
  });
  app.get('/metrics', WITH_HEAD, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
};

const IDLE_CHECK_MS = 100;
/** Requests that were sent may still be on their way. */
const ARRIVED_MS = 100;
/** For the first request of a new connection. */
const UNUSED_GRACE_MS = 500;
const HARD_STOP_MS = 8_000;

/**
 * Each whole request that was sent gets its response. For `drainMs` new ones do too, so that a gateway notices
 * by readiness or `connection: close`; else they are 503 at once. `hardStopMs` from now cuts off the rest.
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
  await pause(ARRIVED_MS);
  // Timers run before the sockets are read, this after.
  await afterSockets();
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
