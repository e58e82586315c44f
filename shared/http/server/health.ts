import type { FastifyInstance } from 'fastify';
import type { ReadModels } from '../../read-models/port.ts';
import { reasonOf } from '../../runtime/error-text.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { JSON_TYPE, messageOf, RETRY_LATER, statusOf } from '../errors.ts';

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
    reply.type(JSON_TYPE).send(JSON.stringify({ status: 'live' }));
  });
  app.get('/health/ready', WITH_HEAD, async (_request, reply) => {
    const { ready: isReady, engines } = await ready().catch(() => ({ ready: false, engines: {} }));
    reply.type(JSON_TYPE);
    if (isReady) return reply.send(JSON.stringify({ status: 'ready', engines }));
    return reply
      .code(statusOf('SERVICE_UNAVAILABLE'))
      .headers(RETRY_LATER)
      .send(notReadyBody(engines));
  });
  app.get('/metrics', WITH_HEAD, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );
};
