/** The HTTP server that routes are registered on, with its limits and one form of every rejection. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
} from 'fastify';
import {
  AppendOutcomeUnknown,
  ControlNotWhole,
  StoreUnavailable,
  UnreadableStream,
} from '../../event-store/errors.ts';
import { ReadModelsUnavailable } from '../../read-models/errors.ts';
import { orElse } from '../../runtime/error-text.ts';
import { newRequestId } from '../../runtime/ids.ts';
import type { Log } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { isTracing } from '../../runtime/tracing.ts';
import {
  helpLink,
  PAYMENT_FAILED,
  type PaymentOutcome,
  REJECTION_HEADER,
  RETRY_LATER,
  reject,
} from '../errors.ts';
import { type Principal, soleHeader } from '../request.ts';
import { watchRoutes } from './known-routes.ts';
import {
  isLeftUnread,
  RESPONSE_HEADERS,
  respondToClientError,
  watchConnections,
} from './raw-responses.ts';
import { recordAtEnd, traceRequests } from './records.ts';
import {
  addShares,
  createRequestTurns,
  createShares,
  type Lifecycle,
  UNREAD_BYTES_MAX,
} from './shares.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by the authenticate hook (auth/hooks.ts). */
    principal: Principal | undefined;
    hasPlace: boolean;
    /** For the log; routes set it once it is well formed. */
    paymentId: string | undefined;
    errorCode: string | undefined;
    /** Of a command; undefined while none has begun (route.ts). */
    paymentOutcome: PaymentOutcome | undefined;
    /** For the log alone, as the next. Why the token is not valid. */
    tokenFault: string | undefined;
    /** Of a 4xx. They repeat nothing of what the client sent (gaps §3). */
    errorDetails: readonly string[] | undefined;
    startedAtMs: number;
  }
  interface FastifyInstance {
    lifecycle: Lifecycle;
    /** The last `onRequest` hook of a route, behind those that authenticate it (shares.ts). */
    takePlace: onRequestHookHandler;
    logFault(request: FastifyRequest, error: unknown): void;
  }
}

/** With fewer than twice as many places, one merchant may need them all. */
const PLACES_OF_ONE_MIN = 64;

type AppOptions = {
  log: Log;
  metrics: Metrics;
  /** Requests at once; of more than 128 one merchant has half; above it 503. */
  maxInFlight: number;
  /** Routes of other processes under the same base URL (known-routes.ts). */
  servedElsewhere?: readonly string[];
  /** The time that a client has to read 256 KiB of a response; tests shorten it. */
  stalledMs?: number;
  /** Limits for the arrival of a request, and how often Node checks them; tests shorten them. */
  arrivalMs?: { request: number; headers: number; keepAlive: number; check: number };
};

const BODY_BYTES_MAX = 65_536;
const HEADER_BYTES_MAX = 16_384;
const ARRIVAL_MS = { request: 10_000, headers: 5_000, keepAlive: 5_000, check: 500 };

/** A broken percent escape has to decode, and to meet the route's own 400 (gaps §1, §2). */
const decodable = ({ url = '/' }: { url?: string | undefined }): string => {
  if (!url.includes('%')) return url;
  const path = orElse(undefined, () => decodeURI(url.split('?', 1)[0] ?? ''));
  return path === undefined ? url.replaceAll('%', '%25') : url;
};

const WHERE_TO_LOOK = 'payments are at /api/v1/payments; /docs lists every address';
const ONE_SLASH_TOO_MANY = 'without the slash at its end it takes this method';
const SERVED_ELSEWHERE = 'another process serves this address: send requests to the gateway';

const beginRequests = (app: FastifyInstance, options: AppOptions): void => {
  const methodsOf = watchRoutes(app, options.servedElsewhere);
  const rejectUnknown = (request: FastifyRequest, reply: FastifyReply) => {
    const methods = methodsOf(request.raw.url ?? '');
    if (methods.length === 0) return reject(reply, 'NOT_FOUND', [WHERE_TO_LOOK]);
    if (methods.includes(request.method)) return reject(reply, 'NOT_FOUND', [SERVED_ELSEWHERE]);
    const allow = methods.join(', ');
    const withoutSlash = (request.raw.url ?? '').replace(/\/(?=\?|$)/, '');
    const details = [`this address takes ${allow}`];
    if (methodsOf(withoutSlash).includes(request.method)) details.push(ONE_SLASH_TOO_MANY);
    return reject(reply, 'METHOD_NOT_ALLOWED', details, { allow });
  };
  app.setNotFoundHandler(rejectUnknown);
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...RESPONSE_HEADERS, 'request-id': request.id });
    recordAtEnd(request, reply, options);
    const { headers, httpVersion, rawHeaders } = request.raw;
    const host = soleHeader(rawHeaders, 'host');
    // A body is JSON whatever its content type says: the framework must not reject it (gaps §3).
    headers['content-type'] = undefined;
    if (host === undefined && httpVersion === '1.1') {
      reject(reply, 'INVALID_REQUEST', ['the Host header is required']);
    } else if (host === null) {
      reject(reply, 'INVALID_REQUEST', ['the Host header must be given once']);
    } else if (app.lifecycle.refusing) {
      reject(reply, 'SERVICE_UNAVAILABLE', ['the service is shutting down'], RETRY_LATER);
    } else if (request.is404) rejectUnknown(request, reply);
    else done();
  });
};

const ERROR_CODE = /^\{"error":"([A-Z_]+)"/;

const addErrorCode = (request: FastifyRequest, reply: FastifyReply, payload: unknown): void => {
  const failed = reply.statusCode === 402 ? PAYMENT_FAILED : undefined;
  const code = (typeof payload === 'string' && ERROR_CODE.exec(payload)?.[1]) || failed;
  if (code === undefined) return;
  request.errorCode = code;
  if (reply.statusCode < 500) request.errorDetails = JSON.parse(String(payload)).details;
  reply.header('link', helpLink(code));
};

const endRequests = (app: FastifyInstance): void => {
  app.addHook('onSend', (request, reply, payload, done) => {
    if (reply.statusCode >= 400) addErrorCode(request, reply, payload);
    const send = (isLast: boolean): void => {
      if (isLast) reply.header('connection', 'close');
      done();
    };
    if (app.lifecycle.closing || request.raw.complete !== false) send(app.lifecycle.closing);
    else void isLeftUnread(request.raw).then(send);
  });
};

/** In seconds: a person has to act first. */
const UNREADABLE_RETRY = { 'retry-after': '30' };
const UNREADABLE = [
  'the events of this payment are not whole or cannot be read: nothing was carried out, and an operator has to look at it',
];

/** By their codes, the errors of operators' commands that pass by themselves; without a text, their message is it. */
const PASSING = new Map<string, string | undefined>([
  ['STANDING_BY', 'this projector stands by, or is stopping; ask the one that follows the log'],
  ['REBUILD_RUNNING', 'a rebuild is under way already; GET /ops/v1/projections says how far it is'],
  ['COMPARISON_RUNNING', undefined],
  ['RELAY_NOT_READY', undefined],
]);

const addFaults = (app: FastifyInstance, { log, metrics }: AppOptions): void => {
  app.decorate('logFault', ({ id: requestId, routeOptions }: FastifyRequest, error: unknown) => {
    log.error({ err: error, requestId, route: routeOptions.url }, 'fault');
  });
  app.setErrorHandler((error: FastifyError, request, reply) => {
    if (error.code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
      const details = [`the body must be at most ${BODY_BYTES_MAX} bytes`];
      return reject(reply, 'INVALID_REQUEST', details, {}, 413);
    }
    if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500)
      return reject(reply, 'INVALID_REQUEST', ['the body did not arrive whole']);
    if (PASSING.has(error.code)) {
      // The code tells apart the reasons under one error of the contract.
      const headers = { 'retry-after': '5', [REJECTION_HEADER]: error.code };
      const details = [PASSING.get(error.code) ?? error.message];
      return reject(reply, 'SERVICE_UNAVAILABLE', details, headers);
    }
    if (error.code === 'RELAY_OFF')
      return reject(reply, 'BUSINESS_RULE_VIOLATION', [error.message]);
    const { id: requestId, routeOptions } = request;
    if (error instanceof ControlNotWhole) {
      log.error({ requestId, route: routeOptions.url }, error.message);
      return reject(reply, 'SERVICE_UNAVAILABLE', [error.message], UNREADABLE_RETRY);
    }
    if (error instanceof UnreadableStream) {
      metrics.unreadableRequests.inc();
      const fields = { requestId, route: routeOptions.url, reason: error.message };
      log.error(fields, 'request rejected: the events of its payment are not whole');
      return reject(reply, 'SERVICE_UNAVAILABLE', UNREADABLE, UNREADABLE_RETRY);
    }
    // A stream whose client has left is no fault.
    const hasLeft = error.code === 'ERR_STREAM_PREMATURE_CLOSE' && reply.raw.destroyed;
    if (!hasLeft) app.logFault(request, error);
    if (error instanceof StoreUnavailable || error instanceof ReadModelsUnavailable)
      return reject(reply, 'SERVICE_UNAVAILABLE', [], RETRY_LATER);
    if (error instanceof AppendOutcomeUnknown) {
      const details = ['it is not known whether anything was stored'];
      return reject(reply, 'SERVICE_UNAVAILABLE', details, RETRY_LATER);
    }
    return reject(reply, 'INTERNAL_ERROR');
  });
};

/** An address that the router cannot read, such as `http://`; no hook runs for it. */
const rejectAddress = (request: FastifyRequest, reply: FastifyReply, options: AppOptions): void => {
  const code = 'INVALID_REQUEST';
  request.errorCode = code;
  recordAtEnd(request, reply, options);
  const headers = { ...RESPONSE_HEADERS, 'request-id': request.id, link: helpLink(code) };
  reject(reply, code, ['the address is not well formed'], headers);
};

const noCompiler = (): never => {
  throw new Error('handlers check what they get: no route has a schema of the framework');
};

// Without them the framework loads its own, a tenth of the work of a start.
const NO_COMPILERS = { buildValidator: noCompiler, buildSerializer: noCompiler };

const REQUESTS_PER_SOCKET_MAX = 10_000;

const serverOf = (
  arrivalMs: NonNullable<AppOptions['arrivalMs']>,
  handler: (request: IncomingMessage, response: ServerResponse) => void,
): Server => {
  const server = createServer(
    {
      requestTimeout: arrivalMs.request,
      headersTimeout: arrivalMs.headers,
      keepAliveTimeout: arrivalMs.keepAlive,
      connectionsCheckingInterval: arrivalMs.check,
      maxHeaderSize: HEADER_BYTES_MAX,
      requireHostHeader: false,
      optimizeEmptyRequests: true,
    },
    handler,
  );
  server.maxRequestsPerSocket = REQUESTS_PER_SOCKET_MAX;
  return server;
};

const OF_ROUTES = ['principal', 'paymentId', 'errorCode', 'paymentOutcome'] as const;
const FOR_THE_LOG = ['tokenFault', 'errorDetails'] as const;

/** A server without routes. Bodies reach routes as raw bytes, or undefined. */
export const buildApp = (options: AppOptions): FastifyInstance => {
  const arrivalMs = options.arrivalMs ?? ARRIVAL_MS;
  const lifecycle: Lifecycle = {
    places: createShares(options.maxInFlight, PLACES_OF_ONE_MIN),
    unread: createShares(UNREAD_BYTES_MAX),
    turns: createRequestTurns(),
    turnMs: 5_000,
    closing: false,
    refusing: false,
  };
  const app = Fastify({
    logger: false,
    bodyLimit: BODY_BYTES_MAX,
    serverFactory: (handler) => serverOf(arrivalMs, handler),
    exposeHeadRoutes: false,
    // No path is longer than the headers, so a long id meets the id check, not a 404.
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    trustProxy: false,
    requestIdHeader: false,
    genReqId: newRequestId,
    return503OnClosing: false,
    schemaController: { compilersFactory: NO_COMPILERS },
    rewriteUrl: decodable,
    clientErrorHandler: respondToClientError,
    frameworkErrors: (_error, request, reply) => rejectAddress(request, reply, options),
  });
  app.decorate('lifecycle', lifecycle);
  for (const name of [...OF_ROUTES, ...FOR_THE_LOG]) app.decorateRequest(name, undefined);
  app.decorateRequest('startedAtMs', 0);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  addShares(app, options.stalledMs);
  endRequests(app);
  if (isTracing()) traceRequests(app, options.metrics);
  beginRequests(app, options);
  addFaults(app, options);
  watchConnections(app.server);
  return app;
};
