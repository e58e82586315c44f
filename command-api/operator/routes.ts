/**
 * The operator's routes of the command side: what is unresolved, and the end of what the provider
 * will never answer for (ADR-0013). Scope `ops:admin`; a token of one merchant sees its own.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify';
import { z } from 'zod';
import { JSON_TYPE, reject } from '../../shared/http/errors.ts';
import { PAYMENT_ID_FORM, parsePaymentId } from '../../shared/http/payment-id.ts';
import type {} from '../../shared/http/server/app.ts';
import type { ReadModelsReader } from '../../shared/read-models/port.ts';
import { holdsLongNumber } from '../../shared/runtime/card-numbers.ts';
import type { CommandDeps, Principal } from '../deps.ts';
import { BODY_NOT_JSON } from '../request/invalid.ts';
import { parseJson } from '../request/json.ts';
import { listUnresolved } from './list-unresolved.ts';
import { type Resolved, resolveByHand } from './resolve.ts';

export type CommandOps = {
  /** Token and scope `ops:admin`. */
  authorize: onRequestHookHandler;
  deps: CommandDeps;
  readModels: Pick<ReadModelsReader, 'unresolved'>;
};

const resolutionBody = z.strictObject(
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

const principalOf = ({ principal, id }: FastifyRequest): Principal => {
  if (principal === undefined) throw new Error('a route without its guard');
  return { merchantId: principal.merchantId, actor: principal.actor, requestId: id };
};

const problemOf = ({ path, message }: z.core.$ZodIssue): string =>
  path.length === 0 ? message : `${path.join('.')} ${message}`;

/** Registers the routes on an app that has been built (shared/http/server/app.ts). */
export const registerCommandOps = (app: FastifyInstance, ops: CommandOps): void => {
  const { authorize: onRequest, deps, readModels } = ops;
  app.get('/ops/v1/unresolved', { onRequest }, async (request, reply) => {
    const unresolved = await listUnresolved(deps, readModels, principalOf(request).merchantId);
    return reply.type(JSON_TYPE).send(JSON.stringify({ unresolved }));
  });

  app.post<{ Params: { paymentId: string } }>(
    '/ops/v1/payments/:paymentId/resolve',
    { onRequest },
    async (request, reply) => {
      const paymentId = parsePaymentId(request.params.paymentId);
      if (paymentId === undefined) return reject(reply, 'INVALID_PAYMENT_ID', [PAYMENT_ID_FORM]);
      const json = parseJson(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
      if (!json.ok) return reject(reply, 'INVALID_REQUEST', [BODY_NOT_JSON]);
      const parsed = resolutionBody.safeParse(json.value);
      if (!parsed.success) {
        return reject(reply, 'INVALID_REQUEST', parsed.error.issues.map(problemOf));
      }
      const resolution = { paymentId, ...parsed.data };
      const resolved = await resolveByHand(deps, principalOf(request), resolution);
      if (resolved.kind !== 'unknown payment') request.paymentId = paymentId;
      return response(reply, paymentId, resolved);
    },
  );
};

const response = (reply: FastifyReply, paymentId: string, resolved: Resolved): FastifyReply => {
  switch (resolved.kind) {
    case 'unknown payment':
      return reject(reply, 'PAYMENT_NOT_FOUND');
    case 'rejected': {
      const { why, retryAfterSeconds } = resolved;
      const headers =
        retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
      return reject(reply, 'BUSINESS_RULE_VIOLATION', [why], headers);
    }
    case 'resolved': {
      const { operation, status, revision } = resolved;
      const { kind, operationId, amountMinor, ended } = operation;
      const body = {
        paymentId,
        operation: kind,
        operationId,
        amountMinor,
        outcome: ended?.outcome,
        status,
        revision,
      };
      return reply.type(JSON_TYPE).send(JSON.stringify(body));
    }
  }
};
