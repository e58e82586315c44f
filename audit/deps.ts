/** What the audit routes work with, and the one way that each of them begins. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { EventStore, Position } from '../shared/event-store/port.ts';
import type { Recorder } from '../shared/http/access-recorder.ts';
import type { Principal } from '../shared/http/auth/authenticate.ts';
import { JSON_TYPE, reject } from '../shared/http/errors.ts';
import { PAYMENT_ID_FORM, parsePaymentId } from '../shared/http/payment-id.ts';
import type {} from '../shared/http/server/app.ts';
import type { Streams } from '../shared/http/server/streams.ts';
import type { ReadModelsReader } from '../shared/read-models/port.ts';
import type { MerchantLookup } from './merchants.ts';

export type AuditDeps = {
  store: EventStore;
  readModels: Pick<ReadModelsReader, 'search' | 'getAny'>;
  /** Writes into the log that somebody has read. */
  record: Recorder;
  merchants: MerchantLookup;
  streams: Streams;
  /** Hears of every verification of the whole log. */
  onVerified: (ok: boolean) => void;
};

export type PaymentRoute = { Params: { paymentId: string } };

/** The merchant whose events alone the caller may see; undefined: all. */
export const onlyOf = ({ merchantId }: Principal): string | undefined =>
  merchantId === '*' ? undefined : merchantId;

/** Behind the guard there is a caller. */
export const principalOf = (request: FastifyRequest): Principal => {
  if (request.principal === undefined) throw new Error('an audit route without its guard');
  return request.principal;
};

const detailOf = ({ code, path, message }: z.core.$ZodIssue): string =>
  code === 'unrecognized_keys'
    ? 'a parameter of another name is not known here'
    : `${path.join('.')} ${message}`;

/** The parameters; undefined where they are wrong, which has then been answered. */
export const parametersOf = <S extends z.ZodType>(
  schema: S,
  request: FastifyRequest,
  reply: FastifyReply,
): z.output<S> | undefined => {
  const parsed = schema.safeParse({ ...(request.query as object) });
  if (parsed.success) return parsed.data;
  reject(reply, 'INVALID_REQUEST', [...new Set(parsed.error.issues.map(detailOf))]);
  return undefined;
};

/** The paymentId; undefined where it is malformed, which has then been answered. */
export const paymentIdOf = (
  request: FastifyRequest<PaymentRoute>,
  reply: FastifyReply,
): string | undefined => {
  const paymentId = parsePaymentId(request.params.paymentId);
  if (paymentId === undefined) reject(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
  return paymentId;
};

export const sendJson = (reply: FastifyReply, value: unknown): FastifyReply =>
  reply.type(JSON_TYPE).send(JSON.stringify(value));

/** Whether the client asks for this type and not, say, for JSON. */
export const accepts = (request: FastifyRequest, type: string): boolean =>
  request.headers.accept?.toLowerCase().includes(type) === true;

/** Where a reader wants to begin: null is the start of the log. */
export const startOf = (from: string | undefined): Position | null =>
  from === undefined || from === 'start' ? null : from;

/** What a store says to a text that is no position of it. */
export const rejectPosition = (reply: FastifyReply, error: unknown): FastifyReply => {
  if (!(error instanceof RangeError)) throw error;
  return reject(reply, 'INVALID_REQUEST', ['from must be start or a position of the log']);
};
