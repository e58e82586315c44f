/** A log line, a measurement and with tracing a span (none for monitors) for each request, routed or not. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Log, logRequest } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { receivedTraceparent, startSpan, takeSpanCounts } from '../../runtime/tracing.ts';

type Options = { log: Log; metrics: Metrics };

const UNAUTHORIZED = 401;
const CLIENT_LEFT_STATUS = 499;
const DETAILS_MAX = 10;

const record = ({ log, metrics }: Options, request: FastifyRequest, { raw }: FastifyReply) => {
  const durationMs = performance.now() - request.startedAtMs;
  const { method, routeOptions } = request;
  const route = routeOptions.url ?? 'unknown';
  const status = raw.headersSent ? raw.statusCode : CLIENT_LEFT_STATUS;
  const labels = {
    http_request_method: method,
    http_route: route,
    http_response_status_code: status,
  };
  metrics.requestSeconds.observe(labels, durationMs / 1000);
  const fields = {
    requestId: request.id,
    method,
    route,
    status,
    error: request.errorCode,
    details: request.errorDetails?.slice(0, DETAILS_MAX),
    reason: request.tokenFault,
    client: status === UNAUTHORIZED ? request.raw.socket.remoteAddress : undefined,
    durationMs: Math.round(durationMs * 100) / 100,
    paymentId: request.paymentId,
    merchant: request.principal?.merchantId,
    trace_id: request.span?.place.traceId,
  };
  // Monitors ask every few seconds, so only a failing health check gets a line.
  const isRoutine = route.startsWith('/health/') && status < 400;
  if (isRoutine) log.debug(fields, 'request');
  else logRequest(log, fields);
};

export const recordAtEnd = (request: FastifyRequest, reply: FastifyReply, options: Options) => {
  request.startedAtMs = performance.now();
  // 'close' also comes when the client has left; the framework's onResponse does not.
  reply.raw.on('close', () => record(options, request, reply));
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Undefined where this process makes no spans. */
    span: ReturnType<typeof startSpan>;
  }
}

const SERVER_FAULT = 500;

const isWatched = (route: string | undefined): boolean =>
  route?.startsWith('/health/') === true || route === '/metrics';

/** Only an error of the service, or a client that left, fails a span; a rejection does not. */
const endOf = (request: FastifyRequest, { raw: { headersSent, statusCode } }: FastifyReply) => {
  const fault = statusCode >= SERVER_FAULT ? (request.errorCode ?? String(statusCode)) : undefined;
  request.span?.end({
    'http.response.status_code': headersSent ? statusCode : undefined,
    'error.type': headersSent ? fault : 'CLIENT_LEFT',
    'payments.payment_id': request.paymentId,
  });
};

const spanOf = ({ method, headers, routeOptions: { url } }: FastifyRequest) =>
  isWatched(url)
    ? undefined
    : startSpan(
        {
          name: url === undefined ? method : `${method} ${url}`,
          kind: 'SERVER',
          attributes: { 'http.request.method': method, 'http.route': url },
        },
        receivedTraceparent(headers.traceparent),
      );

/** Call it before any hook that may respond. */
export const traceRequests = (app: FastifyInstance, metrics: Metrics): void => {
  app.decorateRequest('span', undefined);
  metrics.beforeScrape(() => {
    for (const [outcome, count] of Object.entries(takeSpanCounts()))
      metrics.traceSpans.inc({ outcome }, count);
  });
  app.addHook('onRequest', (request, reply, done) => {
    request.span = spanOf(request);
    if (request.span !== undefined) reply.raw.once('close', () => endOf(request, reply));
    done();
  });
  // Reading a body ends in the socket's async context, so the span's context begins after it.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span === undefined) done();
    else request.span.run(done);
  });
};
