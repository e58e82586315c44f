/**
 * The operator's routes of the command side: the list of unresolved operations, and resolving one by
 * hand whose outcome the provider will never give (ADR-0013). Scope `ops:admin`; a token of one merchant sees its own.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { reject } from '../../shared/http/errors.ts';
import {
  okJson,
  type Read,
  type RequestForm,
  type Route,
  type RoutesOf,
  readBy,
  sendJson,
} from '../../shared/http/route.ts';
import type { ReadModelsReader } from '../../shared/read-models/port.ts';
import type { CommandDeps } from '../deps.ts';
import { readJson } from '../request/read-request.ts';
import { Resolution, ResolveRequest, UnresolvedList } from './contract.ts';
import { listUnresolved } from './list-unresolved.ts';
import { type Resolved, resolveByHand } from './resolve.ts';
import { ServiceSettings } from './settings.ts';

export type OperatorDeps = {
  commands: CommandDeps;
  readModels: Pick<ReadModelsReader, 'unresolved'>;
  /** The settings in effect, secrets hidden. */
  service: ServiceSettings;
};

const readResolve = (request: FastifyRequest) => {
  const json: Read<unknown> = readJson(request);
  return json.ok ? readBy(ResolveRequest, json.value) : json;
};

const route = <const F extends RequestForm>(own: Route<OperatorDeps, F>) => own;

export const OPERATOR_ROUTES = {
  serviceSettings: route({
    request: { allMerchants: true },
    responses: okJson(ServiceSettings),
    handle: ({ service }, _input, reply) => sendJson(reply, service),
  }),
  listUnresolved: route({
    request: {},
    responses: okJson(UnresolvedList),
    handle: async ({ commands, readModels }, { principal }, reply) => {
      const unresolved = await listUnresolved(commands, readModels, principal.merchantId);
      return sendJson(reply, { unresolved });
    },
  }),
  resolvePayment: route({
    request: {
      paymentId: 'INVALID_PAYMENT_ID',
      read: readResolve,
      body: { schema: ResolveRequest, required: true },
    },
    responses: {
      ...okJson(Resolution),
      422: { description: 'There is nothing to resolve, or something better can be had.' },
    },
    handle: async ({ commands }, { principal, paymentId, content }, reply) => {
      const { merchantId, actor } = principal;
      const operator = { merchantId, actor, requestId: reply.request.id };
      const resolved = await resolveByHand(commands, operator, { paymentId, ...content });
      if (resolved.kind !== 'unknown payment') reply.request.paymentId = paymentId;
      return respond(reply, paymentId, resolved);
    },
  }),
} satisfies Partial<RoutesOf<'command-api', OperatorDeps>>;

const respond = (reply: FastifyReply, paymentId: string, resolved: Resolved): FastifyReply => {
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
      return sendJson(reply, body);
    }
  }
};
