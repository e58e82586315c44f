/** A span for each request, but not for those of monitors. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Metrics } from '../../runtime/metrics.ts';
import {
  type OpenSpan,
  receivedTraceparent,
  spanCounts,
  startSpan,
} from '../../runtime/tracing.ts';

declare module 'fastify' {
  interface FastifyRequest {
    span: OpenSpan | undefined;
  }
}

const SERVER_FAULT = 500;
const CLIENT_LEFT = 'CLIENT_LEFT';

const isWatched = (route: string | undefined): boolean =>
  route?.startsWith('/health/') === true || route === '/metrics';

/** Only an error of the service, or a client that left, fails a span; a rejection does not. */
const failureOf = ({ errorCode }: FastifyRequest, { raw }: FastifyReply): string | undefined => {
  if (!raw.headersSent) return CLIENT_LEFT;
  return raw.statusCode >= SERVER_FAULT ? (errorCode ?? String(raw.statusCode)) : undefined;
};

const endOf = (span: OpenSpan, request: FastifyRequest, reply: FastifyReply): void => {
  const { headersSent, statusCode } = reply.raw;
  span.end({
    'http.response.status_code': headersSent ? statusCode : undefined,
    'error.type': failureOf(request, reply),
    'payments.payment_id': request.paymentId,
  });
};

const spanOf = ({ method, headers, routeOptions: { url } }: FastifyRequest) =>
  isWatched(url)
    ? undefined
    : startSpan({
        name: url === undefined ? method : `${method} ${url}`,
        kind: 'server',
        parent: receivedTraceparent(headers.traceparent),
        attributes: { 'http.request.method': method, 'http.route': url },
      });

const watchSpans = (metrics: Metrics): void => {
  let counted = { exported: 0, dropped: 0 };
  metrics.beforeScrape(() => {
    const { exported, dropped } = spanCounts();
    metrics.traceSpans.inc({ outcome: 'exported' }, exported - counted.exported);
    metrics.traceSpans.inc({ outcome: 'dropped' }, dropped - counted.dropped);
    counted = { exported, dropped };
  });
};

/** Call it before any hook that may respond. */
export const traceRequests = (app: FastifyInstance, metrics: Metrics): void => {
  app.decorateRequest('span', undefined);
  watchSpans(metrics);
  app.addHook('onRequest', (request, reply, done) => {
    const span = spanOf(request);
    if (span !== undefined) {
      request.traceId = span.place.traceId;
      request.span = span;
      reply.raw.once('close', () => endOf(span, request, reply));
    }
    done();
  });
  // Reading a body ends in the socket's async context, so the span's context begins after it.
  app.addHook('preHandler', (request, _reply, done) => {
    if (request.span === undefined) done();
    else request.span.run(done);
  });
};
