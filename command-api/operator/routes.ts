/**
 * The operator's routes of the command side: what is unresolved, and the end of what the provider
 * will never answer for (decision 0013). Scope `ops:admin`; a token of one merchant sees its own.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { z } from 'zod';
import { BODY_NOT_JSON, PAYMENT_ID_FORM, parsePaymentId } from '../../shared/http/contract.ts';
import { JSON_TYPE, refuse } from '../../shared/http/errors.ts';
import type {} from '../../shared/http/server/app.ts';
import type { PaymentViewsReader } from '../../shared/read-models/port.ts';
import type { Caller, CommandRoom } from '../operate.ts';
import { parseJson } from '../request/json.ts';
import { listUnsettled } from './list-unresolved.ts';
import { type Settled, settleByHand } from './resolve.ts';

export type CommandOps = {
  /** Token and scope `ops:admin`. */
  guard: onRequestHookHandler;
  room: CommandRoom;
  views: Pick<PaymentViewsReader, 'unsettled'>;
};

/** Spaces and dashes between the digits of a card number do not hide it (decisions §4). */
const GAPS = /[\s\p{Pd}\p{Cf}\u2212]+/gu;
const holdsLongNumber = (text: string): boolean => /[0-9]{12}/.test(text.replace(GAPS, ''));

const settlementBody = z.strictObject(
  {
    outcome: z.enum(['approved', 'declined'], { error: 'must be one of approved, declined' }),
    evidence: z
      .string({ error: 'must be a string' })
      .refine((text) => text.trim() !== '' && text.length <= 1000, {
        error: 'must be 1 to 1000 characters',
      })
      .refine((text) => !holdsLongNumber(text), {
        error: 'must not hold a run of 12 digits or more: no card number may be kept',
      }),
    operationId: z.string({ error: 'must be a string' }).optional(),
  },
  { error: 'the body must hold outcome, evidence and at most operationId' },
);

const callerOf = ({ caller, id }: FastifyRequest): Caller => {
  if (caller === undefined) throw new Error('a route without its guard');
  return { merchantId: caller.merchantId, actor: caller.actor, requestId: id };
};

const problemOf = ({ path, message }: z.core.$ZodIssue): string =>
  path.length === 0 ? message : `${path.join('.')} ${message}`;

/** Registers the routes on an app that has been built (shared/http/server/app.ts). */
export const registerCommandOps = (app: FastifyInstance, ops: CommandOps): void => {
  const { guard: onRequest, room, views } = ops;
  app.get('/ops/v1/unsettled', { onRequest }, async (request, reply) => {
    const unsettled = await listUnsettled(room, views, callerOf(request).merchantId);
    return reply.type(JSON_TYPE).send(JSON.stringify({ unsettled }));
  });

  app.post<{ Params: { paymentId: string } }>(
    '/ops/v1/payments/:paymentId/settle',
    { onRequest },
    async (request, reply) => {
      const paymentId = parsePaymentId(request.params.paymentId);
      if (paymentId === undefined) return refuse(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
      const json = parseJson(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
      if (!json.ok) return refuse(reply, 'INVALID_REQUEST', [BODY_NOT_JSON]);
      const parsed = settlementBody.safeParse(json.value);
      if (!parsed.success) {
        return refuse(reply, 'INVALID_REQUEST', parsed.error.issues.map(problemOf));
      }
      const settlement = { paymentId, ...parsed.data };
      const settled = await settleByHand(room, callerOf(request), settlement);
      if (settled.kind !== 'unknown payment') request.paymentId = paymentId;
      return answer(reply, paymentId, settled);
    },
  );
};

const answer = (reply: FastifyReply, paymentId: string, settled: Settled): FastifyReply => {
  switch (settled.kind) {
    case 'unknown payment':
      return refuse(reply, 'PAYMENT_NOT_FOUND');
    case 'refused': {
      const { why, retryAfterSeconds } = settled;
      const headers =
        retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      return refuse(reply, 'BUSINESS_RULE_VIOLATION', [why], headers);
    }
    case 'settled': {
      const { operation, status, revision } = settled;
      const { kind, operationId, amount, outcome } = operation;
      const body = {
        paymentId,
        operation: kind,
        operationId,
        amountMinor: amount,
        outcome: outcome?.result,
        status,
        revision,
      };
      return reply.type(JSON_TYPE).send(JSON.stringify(body));
    }
  }
};
