/** Error codes and what to do about each (interface, "Error body"; gaps §1). They are stable: clients switch on them. */
import type { FastifyReply } from 'fastify';
import guide from './error-guide.json' with { type: 'json' };

const ERRORS = {
  INVALID_REQUEST: [400, 'The request is invalid.'],
  INVALID_PAYMENT_ID: [400, 'The paymentId is invalid.'],
  UNAUTHORIZED: [401, 'A valid access token is required.'],
  FORBIDDEN: [403, 'The access token does not allow this.'],
  NOT_FOUND: [404, 'There is nothing at this address.'],
  PAYMENT_NOT_FOUND: [404, 'There is no such payment.'],
  WEBHOOK_ENDPOINT_NOT_FOUND: [404, 'There is no such webhook endpoint.'],
  METHOD_NOT_ALLOWED: [405, 'This method is not allowed here.'],
  IDEMPOTENCY_IN_PROGRESS: [409, 'The first request with this Idempotency-Key is still running.'],
  BUSINESS_RULE_VIOLATION: [422, 'A business rule forbids this.'],
  CAPTURE_NOT_ALLOWED: [422, 'The payment cannot be captured.'],
  VOID_NOT_ALLOWED: [422, 'The payment cannot be voided.'],
  REFUND_NOT_ALLOWED: [422, 'The payment cannot be refunded.'],
  WEBHOOK_NOT_ALLOWED: [422, 'The webhook endpoint does not allow this.'],
  IDEMPOTENCY_KEY_REUSED: [422, 'This Idempotency-Key was used for another request.'],
  RATE_LIMITED: [429, 'Too many requests.'],
  INTERNAL_ERROR: [500, 'Something went wrong on our side.'],
  PROVIDER_UNAVAILABLE: [503, 'The payment provider is unavailable.'],
  SERVICE_UNAVAILABLE: [503, 'The service is unavailable for the moment.'],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type ErrorCode = keyof typeof ERRORS;

export const ERROR_CODES = Object.keys(ERRORS) as ErrorCode[];

/** The transport may give a code another status (408, 413, 417, 431). */
export const statusOf = (code: ErrorCode): number => ERRORS[code][0];

export const UNAVAILABLE = statusOf('SERVICE_UNAVAILABLE');

export const messageOf = (code: ErrorCode): string => ERRORS[code][1];

/** NOT_CHARGED: nothing was stored or sent, or it is proven that nothing was carried out (gaps §7). */
export type PaymentOutcome = 'NOT_CHARGED' | 'UNKNOWN';

/** The header that distinguishes rejections of one code: `STANDING_BY`, `REBUILD_RUNNING`. */
export const REJECTION_HEADER = 'rejection';

export const RETRY_AFTER_SECONDS = 1;

export const RETRY_LATER = { 'retry-after': String(RETRY_AFTER_SECONDS) };

export const errorBody = (code: ErrorCode, details: readonly string[], at: string): string =>
  JSON.stringify({ error: code, message: messageOf(code), details, timestamp: at });

export const reject = (
  reply: FastifyReply,
  code: ErrorCode,
  details: readonly string[] = [],
  headers: Readonly<Record<string, string>> = {},
  status: number = statusOf(code),
): FastifyReply =>
  reply
    .code(status)
    .headers(headers)
    .type(JSON_TYPE)
    .send(errorBody(code, details, new Date().toISOString()));

export const JSON_TYPE = 'application/json; charset=utf-8';

/** A create that the provider declined: its body has no code (402). */
export const PAYMENT_FAILED = 'PAYMENT_FAILED';

export type ErrorEntry = { means: string; todo: string; stored: string };

export const ERROR_GUIDE: Readonly<Record<ErrorCode | typeof PAYMENT_FAILED, ErrorEntry>> = guide;

export const anchorOf = (code: string): string => code.toLowerCase();

export const ERRORS_PATH = '/docs/errors';

/** The `Link` header of an error (RFC 8288). */
export const helpLink = (code: string): string => `<${ERRORS_PATH}#${anchorOf(code)}>; rel="help"`;
