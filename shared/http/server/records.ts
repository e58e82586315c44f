/** One line of the log and one measurement for each request, whoever has responded to it. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Log } from '../../runtime/log.ts';
import type { Metrics } from '../../runtime/metrics.ts';

/** Where requests are recorded. */
export type RecordOptions = { log: Log; metrics: Metrics };

/** What is recorded of a request; `startedAtMs` is a time of the monotonic clock. */
export type RequestRecord = {
  requestId: string;
  method: string;
  /** The template of its route. */
  route: string;
  status: number;
  startedAtMs: number;
  error?: string | undefined;
  paymentId?: string | undefined;
  merchantId?: string | undefined;
  /** Where this process makes spans. */
  traceId?: string | undefined;
};

/** The status in log and metrics of a request whose client left before the response. */
const CLIENT_LEFT = 499;

/** Whether the request is one of those that a monitor sends every few seconds. */
export const isHealth = (route: string | undefined): boolean =>
  route?.startsWith('/health/') === true;

/** Records a request that has its response. */
export const recordRequest = ({ log, metrics }: RecordOptions, record: RequestRecord): void => {
  const { requestId, method, route, status, startedAtMs, error, paymentId, merchantId } = record;
  const durationMs = performance.now() - startedAtMs;
  const labels = {
    http_request_method: method,
    http_route: route,
    http_response_status_code: status,
  };
  metrics.requestSeconds.observe(labels, durationMs / 1000);
  const fields = {
    requestId,
    method,
    route,
    status,
    error,
    durationMs: Math.round(durationMs * 100) / 100,
    paymentId,
    merchant: merchantId,
    trace_id: record.traceId,
  };
  // Only a health check that fails is worth a line.
  if (isHealth(route) && status < 400) log.debug(fields, 'request');
  else log.flat(fields, 'request');
};

const recordOf = (request: FastifyRequest, { raw }: FastifyReply): RequestRecord => ({
  requestId: request.id,
  method: request.method,
  route: request.routeOptions.url ?? 'unknown',
  status: raw.headersSent ? raw.statusCode : CLIENT_LEFT,
  startedAtMs: request.startedAtMs,
  error: request.errorCode,
  paymentId: request.paymentId,
  merchantId: request.principal?.merchantId,
  traceId: request.traceId,
});

/** Records the request once its connection knows how it ended. */
export const recordAtEnd = (
  request: FastifyRequest,
  reply: FastifyReply,
  options: RecordOptions,
): void => {
  request.startedAtMs = performance.now();
  // 'close' also comes when the client has left; the framework's onResponse does not.
  reply.raw.once('close', () => recordRequest(options, recordOf(request, reply)));
};
