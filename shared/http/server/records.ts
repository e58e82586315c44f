/** One log line and one measurement for each request, whether a route or the server responds. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Log, logRequest } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';

type RecordOptions = { log: Log; metrics: Metrics };

const UNAUTHORIZED = 401;
const CLIENT_LEFT = 499;
const DETAILS_MAX = 10;

const record = (
  { log, metrics }: RecordOptions,
  request: FastifyRequest,
  { raw }: FastifyReply,
): void => {
  const durationMs = performance.now() - request.startedAtMs;
  const { method, routeOptions } = request;
  const route = routeOptions.url ?? 'unknown';
  const status = raw.headersSent ? raw.statusCode : CLIENT_LEFT;
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
    trace_id: request.traceId,
  };
  // Monitors ask every few seconds, so only a failing health check gets a line.
  const isRoutine = route.startsWith('/health/') && status < 400;
  if (isRoutine) log.debug(fields, 'request');
  else logRequest(log, fields);
};

export const recordAtEnd = (
  request: FastifyRequest,
  reply: FastifyReply,
  options: RecordOptions,
): void => {
  request.startedAtMs = performance.now();
  // 'close' also comes when the client has left; the framework's onResponse does not.
  reply.raw.once('close', () => record(options, request, reply));
};
