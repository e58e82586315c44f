import type { FastifyReply } from 'fastify';
import { reject } from '../../../shared/http/errors.ts';
import { NoParameters } from '../../../shared/http/fields.ts';
import { senderOf } from '../../../shared/http/request.ts';
import {
  asJson,
  jsonBody,
  okJson,
  type RoutesOf,
  routeWith,
  sendJson,
} from '../../../shared/http/route.ts';
import type { ReadModelsReader } from '../../../shared/read-models/port.ts';
import type { CommandDeps } from '../../deps.ts';
import { listUnresolved } from '../../recovery/unresolved.ts';
import * as contract from './contract.ts';
import { type Resolved, resolveByHand } from './resolve.ts';

export type OperatorDeps = {
  commands: CommandDeps;
  readModels: Pick<ReadModelsReader, 'unresolved'>;
  service: () => Promise<contract.ServiceSettings>;
};

const route = routeWith<OperatorDeps>();

export const OPERATOR_ROUTES = {
  serviceSettings: route({
    request: { allMerchants: true, query: NoParameters },
    responses: okJson(contract.ServiceSettings),
    handle: async ({ service }, _input, reply) => sendJson(reply, await service()),
  }),
  listUnresolved: route({
    request: { query: NoParameters },
    responses: okJson(contract.UnresolvedList),
    handle: async ({ commands, readModels }, { principal }, reply) => {
      const listed = await listUnresolved(commands, readModels, principal.merchantId);
      const bodies = listed.map(({ request, ...operation }) => ({
        ...operation,
        request: request && contract.requestBody(request),
      }));
      return sendJson(reply, {
        unresolved: bodies.filter(({ state }) => state !== 'UNCONFIRMED'),
        unconfirmed: bodies.filter(({ state }) => state === 'UNCONFIRMED'),
      });
    },
  }),
  resolvePayment: route({
    request: {
      // A merchant must not write the provider's outcome for itself.
      allMerchants: true,
      person: true,
      paymentId: 'INVALID_PAYMENT_ID',
      ...jsonBody(contract.ResolveRequest),
    },
    responses: {
      ...okJson(contract.ResolutionBody),
      202: asJson(contract.ResolutionRequested),
    },
    handle: async ({ commands }, { principal, paymentId, content }, reply) => {
      const { outcome, withoutFence = false } = content;
      const resolution = { ...content, paymentId, outcome: OUTCOMES[outcome], withoutFence };
      const resolved = await resolveByHand(commands, senderOf(principal, reply), resolution);
      if (resolved.kind !== 'unknown payment') reply.request.paymentId = paymentId;
      return respond(reply, paymentId, resolved);
    },
  }),
} satisfies Partial<RoutesOf<'command-api', OperatorDeps>>;

const OUTCOMES = { approved: 'APPROVED', declined: 'DECLINED' } as const;

const respond = (reply: FastifyReply, paymentId: string, resolved: Resolved): FastifyReply => {
  if (resolved.kind === 'unknown payment') return reject(reply, 'PAYMENT_NOT_FOUND');
  if (resolved.kind === 'rejected') {
    const { why, retryAfterSeconds } = resolved;
    const headers =
      retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) };
    return reject(reply, 'BUSINESS_RULE_VIOLATION', [why], headers);
  }
  const { operation, status, revision } = resolved;
  const { kind, operationId, amount, ended, confirmation, resolutionRequest } = operation;
  const taken = { paymentId, operation: kind, operationId, amountMinor: amount, status, revision };
  if (resolutionRequest === undefined)
    return sendJson(reply, {
      ...taken,
      outcome: ended?.outcome,
      confirmed: confirmation === undefined,
    });
  const { outcome } = resolutionRequest;
  const request = contract.requestBody(resolutionRequest);
  return sendJson(reply.code(202), { ...taken, outcome, request });
};
