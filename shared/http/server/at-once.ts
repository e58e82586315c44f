/**
 * Requests that are served at once, before the framework sees them: what they need is in memory or in
 * this process's own file. The framework's part of such a request costs more than all the rest.
 * Each check of the framework's road that can reject is made here too, and where one
 * does, or nothing is found, the request goes that road as if this had not been there.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { newRequestId } from '../../runtime/ids.ts';
import { isTracing } from '../../runtime/tracing.ts';
import { JSON_TYPE } from '../errors.ts';
import { soleHeader } from '../headers.ts';
import type { Lifecycle } from './lifecycle.ts';
import { responseHeaders } from './raw-responses.ts';
import { type RecordOptions, recordRequest } from './records.ts';
import type { Shares } from './shares.ts';
import { requestSpan } from './traced-requests.ts';
import { countUnread, whenGone } from './unread.ts';

/** A response of status 200 in JSON, and what the log says of its request. */
export type FoundAtOnce = {
  etag: string;
  body: string;
  /** The length of the body in UTF-8. */
  bodyBytes: number;
  paymentId: string;
  merchantId: string;
};

/** A route whose GET may be served at once. */
export type AtOnce = {
  /** Its template, for log and metrics. */
  route: string;
  /**
   * Undefined where the framework has to look at the request: another route, a token that was not
   * verified before, no right, no rate or no place left, nothing found. Never throws.
   */
  find(request: IncomingMessage, isFull: Shares['isFull']): FoundAtOnce | undefined;
};

export type AtOnceOptions = RecordOptions & { lifecycle: Lifecycle };

/** What a response takes of the shares; nothing where all of it is with the kernel. */
const holdUntilOut = (
  lifecycle: Lifecycle,
  { merchantId, bodyBytes }: FoundAtOnce,
  response: ServerResponse,
): void => {
  if (response.writableLength === 0) return;
  lifecycle.places.take(merchantId, 1);
  whenGone(response, () => lifecycle.places.take(merchantId, -1));
  countUnread(lifecycle, merchantId, response, bodyBytes);
};

/** True where the request has its response now, and its line in the log. */
export const respondAtOnce = (
  { route, find }: AtOnce,
  options: AtOnceOptions,
  request: IncomingMessage,
  response: ServerResponse,
): boolean => {
  const { lifecycle } = options;
  if (request.method !== 'GET' || lifecycle.closing) return false;
  // Before the rate is drawn: the framework rejects a request without Host, and draws for two.
  if (!soleHeader(request.rawHeaders, 'host')) return false;
  const startedAtMs = performance.now();
  const isFull: Shares['isFull'] = (merchantId) =>
    lifecycle.places.isFull(merchantId) || lifecycle.unread.isFull(merchantId);
  const found = find(request, isFull);
  if (found === undefined) return false;
  const { etag, body, bodyBytes, paymentId, merchantId } = found;
  const span = isTracing() ? requestSpan('GET', route, request.headers) : undefined;
  const requestId = newRequestId();
  const headers = responseHeaders(requestId);
  headers.etag = etag;
  headers['content-type'] = JSON_TYPE;
  headers['content-length'] = String(bodyBytes);
  response.writeHead(200, headers);
  response.end(body);
  holdUntilOut(lifecycle, found, response);
  const recorded = { requestId, method: 'GET', route, status: 200, startedAtMs };
  span?.end({ 'http.response.status_code': 200, 'payments.payment_id': paymentId });
  recordRequest(options, { ...recorded, paymentId, merchantId, traceId: span?.place.traceId });
  return true;
};
