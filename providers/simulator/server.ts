/** The simulated provider over HTTP (provider.md). No body and no address is logged. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { z } from 'zod';
import { engineState, registerHealth } from '../../shared/http/server/health.ts';
import { CardSecret } from '../../shared/payment/card.ts';
import { pause } from '../../shared/runtime/back-off.ts';
import { createMetrics, type Metrics } from '../../shared/runtime/metrics.ts';
import {
  BODY_BYTES_MAX,
  operationBody,
  operationIdShape,
  tokenQuestion,
} from '../http/protocol.ts';
import type { OperationOrder } from '../port.ts';
import type { SimulatedEntry, WaitingOperation } from './ledger.ts';
import { pagePath, registerPage, SHOPPER_PATH } from './page.ts';
import { cardOfToken, networkCodesOf } from './rules.ts';
import type { KnownOperation, Simulation } from './simulation.ts';

/** Holds a call without a response open for that long, unless the client closes it first. */
const SILENCE_MS_MAX = 30_000;

/** An empty parameter counts as absent. */
const given = (number: z.ZodType<number>, otherwise: number) =>
  z.preprocess((value) => (value === '' || value === undefined ? otherwise : value), number);

const page = z.object({
  after: given(z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER), 0),
  limit: given(z.coerce.number().int().min(1).max(1000), 100),
  since: z.iso.datetime({ offset: true }).optional(),
});

const actionOf = (request: FastifyRequest, waiting: WaitingOperation) => {
  const { operationId, outcome, amount, currency, secret, expiresAt } = waiting;
  const url = `${request.protocol}://${request.host}${pagePath(secret)}`;
  const nextAction = { type: 'REDIRECT', url };
  return { operationId, outcome, amount, currency, nextAction, expiresAt };
};

const outcomeOf = (entry: SimulatedEntry) => {
  const { sequence: _sequence, kind: _kind, paymentId: _paymentId, ...outcome } = entry;
  return { ...outcome, ...networkCodesOf(entry) };
};

const operationFrom = (operationId: string, body: z.infer<typeof operationBody>): OperationOrder =>
  'card' in body
    ? { ...body, operationId, card: new CardSecret(body.card) }
    : { ...body, operationId };

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

const isForOperators = (route: string) => route.startsWith('/health/') || route === '/metrics';

const checkToken = (app: FastifyInstance, token: string): void => {
  const expected = digest(`Bearer ${token}`);
  app.addHook('onRequest', async (request, reply) => {
    const route = request.routeOptions.url ?? '';
    if (isForOperators(route) || route.startsWith(SHOPPER_PATH)) return;
    if (!timingSafeEqual(digest(request.headers.authorization ?? ''), expected))
      return reply.code(401).send({ error: 'the bearer token is missing or another one' });
  });
};

const errorWords: Record<number, string> = {
  400: 'the request is not well formed',
  413: `the body is over ${BODY_BYTES_MAX} bytes`,
};

/** Whatever the type of the body says; errors are words of ours alone. */
const readJsonAlways = (app: FastifyInstance): void => {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => {
    try {
      done(null, text === '' ? undefined : JSON.parse(text as string));
    } catch {
      done(Object.assign(new Error('the body is not JSON'), { statusCode: 400 }));
    }
  });
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({ error: 'no such address' }));
  app.setErrorHandler((error: { statusCode?: number; code?: string }, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500) request.log.error({ code: error.code }, 'a call failed');
    return reply.code(status).send({ error: errorWords[status] ?? 'the call could not be served' });
  });
};

const recordCalls = (app: FastifyInstance, metrics: Metrics): void => {
  app.addHook('onResponse', async (request, reply) => {
    const { method } = request;
    const { url: route = 'none' } = request.routeOptions;
    const { statusCode: status } = reply;
    const labels = { http_request_method: method, http_route: route };
    const seconds = reply.elapsedTime / 1000;
    metrics.requestSeconds.observe({ ...labels, http_response_status_code: status }, seconds);
    const durationMs = Math.round(reply.elapsedTime * 10) / 10;
    const level = isForOperators(route) && status < 400 ? 'debug' : 'info';
    request.log[level]({ method, route, status, durationMs }, 'call answered');
  });
};

type Call = FastifyRequest<{ Params: { operationId: string } }>;

/** A FENCED one is a conflict to a PUT alone. */
const respond = (call: Call, reply: FastifyReply, known: KnownOperation) => {
  const { operationId } = call.params;
  switch (known.outcome) {
    case 'RECORDED':
      return outcomeOf(known.entry);
    case 'ACTION_REQUIRED':
      return actionOf(call, known);
    case 'AT_WORK':
      return reply.code(202).send({ operationId, state: 'AT_WORK' });
    case 'FENCED':
      reply.code(call.method === 'PUT' ? 409 : 200);
      return reply.send({ operationId, outcome: 'FENCED' });
  }
};

const addOperations = (app: FastifyInstance, simulation: Simulation): void => {
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());

  app.addHook('preHandler', async (request, reply) => {
    const { operationId } = request.params as { operationId?: string };
    if (operationId !== undefined && !operationIdShape.safeParse(operationId).success)
      return reply.code(400).send({ error: 'the operation id is not well formed' });
  });

  app.put('/operations/:operationId', async (call: Call, reply) => {
    const { operationId } = call.params;
    const body = operationBody.safeParse(call.body);
    if (!body.success) return reply.code(400).send({ error: 'the body is no operation' });
    const carried = await simulation.operate(operationFrom(operationId, body.data));
    switch (carried.outcome) {
      case 'SILENT':
        reply.hijack();
        await pause(SILENCE_MS_MAX, closing.signal);
        reply.raw.socket?.destroy();
        return;
      case 'RESPONSE_LOST':
        reply.hijack();
        reply.raw.socket?.destroy();
        return;
      case 'NOT_REACHABLE':
        // The request did arrive, so only a fence can promise that it will never run.
        return respond(call, reply, simulation.fence(operationId));
      default:
        return respond(call, reply, carried);
    }
  });

  app.get('/operations/:operationId', async (call: Call, reply) => {
    const found = simulation.find(call.params.operationId);
    return found === undefined || found.outcome === 'FENCED'
      ? reply.code(404).send({ error: 'nothing with that id has been carried out' })
      : respond(call, reply, found);
  });

  app.delete('/operations/:operationId', async (call: Call, reply) =>
    respond(call, reply, simulation.fence(call.params.operationId)),
  );

  app.post('/tokens', async ({ body }, reply) => {
    const question = tokenQuestion.safeParse(body);
    if (!question.success) return reply.code(400).send({ error: 'the body names no token' });
    const card = cardOfToken(question.data.token);
    return card ?? reply.code(404).send({ error: 'no such token' });
  });

  app.get('/operations', async (call, reply) => {
    const requested = page.safeParse(call.query);
    if (!requested.success)
      return reply.code(400).send({ error: 'after or limit is no number, or since no time' });
    const { after, limit, since } = requested.data;
    const { entries, next, since: said } = simulation.list(after, limit, since);
    return { operations: entries, next, since: said };
  });
};

/** Not listening yet. Closing it leaves the simulation open. */
export const simulatorServer = (options: {
  simulation: Simulation;
  /** If it is set, every call on operations must carry it. */
  token?: string | undefined;
  logger?: FastifyBaseLogger | undefined;
}): FastifyInstance => {
  const { simulation, token, logger } = options;
  const app = Fastify({
    ...(logger === undefined ? {} : { loggerInstance: logger }),
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_BYTES_MAX,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 8192 },
    requestTimeout: 10_000,
  });
  if (token !== undefined) checkToken(app, token);
  readJsonAlways(app);
  const metrics = createMetrics();
  recordCalls(app, metrics);
  registerHealth(app, {
    metrics,
    ready: async () => {
      const ledger = await engineState(async () => simulation.list(0, 1));
      return { ready: ledger.state === 'up', engines: { ledger } };
    },
  });
  addOperations(app, simulation);
  registerPage(app, simulation, () => undefined);
  return app;
};
