/**
 * The routes of webhook endpoints: a merchant's own, and those of all merchants for operators. What
 * is requested becomes an event of the merchant's stream; the deliverer follows it there.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { EventStore } from '../../shared/event-store/port.ts';
import type { Principal } from '../../shared/http/auth/principal.ts';
import { reject } from '../../shared/http/errors.ts';
import {
  asJson,
  okJson,
  type Read,
  type RequestForm,
  type ResponseForm,
  type Route,
  type RoutesOf,
  readBy,
  sendJson,
} from '../../shared/http/route.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import type { AddressKindOf } from '../../shared/webhooks/addresses.ts';
import type { EndpointCommand } from '../../shared/webhooks/decide.ts';
import type { DeliveryStore } from '../../shared/webhooks/delivery-store/port.ts';
import {
  type Handled,
  handleEndpointCommand,
  merchantsWithEndpoints,
  readEndpoints,
} from '../../shared/webhooks/endpoint-log.ts';
import type { Endpoint } from '../../shared/webhooks/endpoints.ts';
import type { WebhookSecret } from '../../shared/webhooks/secret-check.ts';
import { endpointKey, secretTextOf } from '../../shared/webhooks/signer.ts';
import { readJson } from '../request/read-request.ts';
import {
  AllEndpointsParameters,
  AttemptParameters,
  MerchantEndpointList,
  urlDetails,
  WebhookAttemptList,
  WebhookEndpoint,
  WebhookEndpointChange,
  WebhookEndpointList,
  WebhookEndpointRequest,
  WebhookEndpointWithSecret,
  WebhookResend,
  WebhookRotation,
  WebhookTest,
} from './contract.ts';
import { showEndpoint } from './shown.ts';

export type WebhookDeps = {
  webhooks: {
    store: Pick<EventStore, 'readStream' | 'append' | 'end'>;
    deliveries: Pick<DeliveryStore, 'load' | 'attempts'>;
    secret: WebhookSecret;
    kindOf: AddressKindOf;
  };
};
type Webhooks = WebhookDeps['webhooks'];

const readAs =
  <T>(schema: z.ZodType<T>) =>
  (request: FastifyRequest): Read<T> => {
    const json: Read<unknown> = readJson(request);
    // A body that is not there is an empty one: every field of it may be left out.
    return json.ok ? readBy(schema, json.value ?? {}) : json;
  };

const readRegistration = readAs(WebhookEndpointRequest);
const readChange = readAs(WebhookEndpointChange);
const readRotation = readAs(WebhookRotation);
const readResend = readAs(WebhookResend);

const NOT_ALLOWED: Record<number, ResponseForm> = {
  422: { description: 'It is not allowed; `details` say why.' },
};
const NO_ENDPOINT: Record<number, ResponseForm> = {
  404: { description: 'The merchant has no such webhook endpoint.' },
};
/** As for every route of a merchant, and nothing in the tables of examples makes it happen. */
const FAULT: Record<number, ResponseForm> = {
  500: { description: 'A fault of ours.', unrecorded: true },
};

const contextOf = ({ actor }: Principal, { id }: FastifyRequest) => ({
  actor,
  requestId: id,
  correlationId: id,
  causationId: id,
});

/** Handles a command; undefined once it is rejected. */
const handled = async (
  { store }: Webhooks,
  principal: Principal,
  command: EndpointCommand,
  reply: FastifyReply,
): Promise<Extract<Handled, { kind: 'events' }> | undefined> => {
  const context = contextOf(principal, reply.request);
  const outcome = await handleEndpointCommand(store, principal.merchantId, command, context);
  if (outcome.kind === 'events') return outcome;
  if (outcome.kind === 'rejected') reject(reply, 'WEBHOOK_NOT_ALLOWED', [outcome.why]);
  else reject(reply, 'WEBHOOK_ENDPOINT_NOT_FOUND');
  return undefined;
};

/** The endpoint after a command. Throws Error where the command has deleted it. */
const endpointAfter = (
  { after }: Extract<Handled, { kind: 'events' }>,
  endpointId: string,
): Endpoint => {
  const endpoint = after.endpoints.find((one) => one.endpointId === endpointId);
  if (endpoint === undefined) throw new Error(`webhook endpoint ${endpointId} is gone`);
  return endpoint;
};

/** The merchant's endpoint; undefined, and rejected, for another merchant's as for an unknown one. */
const ownEndpoint = async (
  { store }: Webhooks,
  { merchantId }: Principal,
  endpointId: string,
  reply: FastifyReply,
): Promise<Endpoint | undefined> => {
  const { endpoints } = await readEndpoints(store, merchantId);
  const endpoint = endpoints.find((one) => one.endpointId === endpointId);
  if (endpoint === undefined) reject(reply, 'WEBHOOK_ENDPOINT_NOT_FOUND');
  return endpoint;
};

const withSecret = async ({ deliveries, secret }: Webhooks, endpoint: Endpoint) => {
  const { endpointId, secretNumber } = endpoint;
  const key = endpointKey(await secret(), endpointId, secretNumber);
  return { ...(await showEndpoint(deliveries, endpoint)), secret: secretTextOf(key) };
};

const sendAttempts = async (
  { deliveries }: Webhooks,
  endpointId: string,
  { limit, eventId }: z.output<typeof AttemptParameters>,
  reply: FastifyReply,
): Promise<FastifyReply> =>
  sendJson(reply, { attempts: await deliveries.attempts(endpointId, limit, eventId) });

const endOf = async ({ store }: Webhooks): Promise<{ after?: string }> => {
  const end = await store.end();
  return end === null ? {} : { after: end };
};

const HOUR_MS = 3_600_000;

const route = <const F extends RequestForm>(own: Route<WebhookDeps, F>) => own;

export const WEBHOOK_ROUTES = {
  createWebhookEndpoint: route({
    request: {
      read: readRegistration,
      body: { schema: WebhookEndpointRequest, required: true },
    },
    responses: {
      201: { description: 'Registered.', content: asJson(WebhookEndpointWithSecret) },
      ...NOT_ALLOWED,
      ...FAULT,
    },
    handle: async ({ webhooks }, { principal, content }, reply) => {
      const details = urlDetails(content.url, webhooks.kindOf);
      if (details.length > 0) return reject(reply, 'INVALID_REQUEST', details);
      await webhooks.secret();
      const endpointId = `we_${newUlid()}`;
      const { merchantId } = principal;
      const place = await endOf(webhooks);
      const { url, eventTypes, description } = content;
      const endpoint = {
        endpointId,
        merchantId,
        url,
        ...(eventTypes !== undefined && { eventTypes }),
        ...(description !== undefined && { description }),
        apiVersion: 'v1' as const,
        ...place,
      };
      const done = await handled(webhooks, principal, { kind: 'create', endpoint }, reply);
      if (done === undefined) return reply;
      return sendJson(reply.code(201), await withSecret(webhooks, endpointAfter(done, endpointId)));
    },
  }),
  listWebhookEndpoints: route({
    request: {},
    responses: { ...okJson(WebhookEndpointList), ...FAULT },
    handle: async ({ webhooks }, { principal }, reply) => {
      const { endpoints } = await readEndpoints(webhooks.store, principal.merchantId);
      const show = (one: Endpoint) => showEndpoint(webhooks.deliveries, one);
      return sendJson(reply, { endpoints: await Promise.all(endpoints.map(show)) });
    },
  }),
  getWebhookEndpoint: route({
    request: { endpointId: true },
    responses: { ...okJson(WebhookEndpoint), ...NO_ENDPOINT, ...FAULT },
    handle: async ({ webhooks }, { principal, endpointId }, reply) => {
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      if (endpoint === undefined) return reply;
      return sendJson(reply, await showEndpoint(webhooks.deliveries, endpoint));
    },
  }),
  changeWebhookEndpoint: route({
    request: {
      endpointId: true,
      read: readChange,
      body: { schema: WebhookEndpointChange, required: true },
    },
    responses: { ...okJson(WebhookEndpoint), ...NOT_ALLOWED, ...NO_ENDPOINT, ...FAULT },
    handle: async ({ webhooks }, { principal, endpointId, content }, reply) => {
      const details = urlDetails(content.url, webhooks.kindOf);
      if (details.length > 0) return reject(reply, 'INVALID_REQUEST', details);
      const end = await webhooks.store.end();
      const command = { kind: 'change', endpointId, end, ...content } as const;
      const done = await handled(webhooks, principal, command, reply);
      if (done === undefined) return reply;
      return sendJson(
        reply,
        await showEndpoint(webhooks.deliveries, endpointAfter(done, endpointId)),
      );
    },
  }),
  deleteWebhookEndpoint: route({
    request: { endpointId: true },
    responses: { ...okJson(WebhookEndpoint), ...NO_ENDPOINT, ...FAULT },
    handle: async ({ webhooks }, { principal, endpointId }, reply) => {
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      if (endpoint === undefined) return reply;
      const last = await showEndpoint(webhooks.deliveries, endpoint);
      const done = await handled(webhooks, principal, { kind: 'delete', endpointId }, reply);
      return done === undefined ? reply : sendJson(reply, last);
    },
  }),
  rotateWebhookSecret: route({
    request: {
      endpointId: true,
      read: readRotation,
      body: { schema: WebhookRotation, required: false },
    },
    responses: { ...okJson(WebhookEndpointWithSecret), ...NO_ENDPOINT, ...FAULT },
    handle: async ({ webhooks }, { principal, endpointId, content }, reply) => {
      await webhooks.secret();
      const expiresMs = Date.now() + content.oldExpiresInHours * HOUR_MS;
      const oldExpiresAt = new Date(expiresMs).toISOString();
      const command = { kind: 'rotate', endpointId, oldExpiresAt } as const;
      const done = await handled(webhooks, principal, command, reply);
      if (done === undefined) return reply;
      return sendJson(reply, await withSecret(webhooks, endpointAfter(done, endpointId)));
    },
  }),
  testWebhookEndpoint: route({
    request: { endpointId: true },
    responses: {
      202: { description: 'It is sent in a moment.', content: asJson(WebhookTest) },
      ...NO_ENDPOINT,
      ...FAULT,
    },
    handle: async ({ webhooks }, { principal, endpointId }, reply) => {
      const done = await handled(webhooks, principal, { kind: 'test', endpointId }, reply);
      if (done === undefined) return reply;
      return sendJson(reply.code(202), { eventId: done.appended.at(-1)?.id });
    },
  }),
  resendWebhookEvents: route({
    request: {
      endpointId: true,
      read: readResend,
      body: { schema: WebhookResend, required: true },
    },
    responses: {
      202: { description: 'They are sent from now on.', content: asJson(WebhookEndpoint) },
      ...NOT_ALLOWED,
      ...NO_ENDPOINT,
      ...FAULT,
    },
    handle: async ({ webhooks }, { principal, endpointId, content }, reply) => {
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      if (endpoint === undefined) return reply;
      const { since, eventId } = content;
      const event =
        eventId === undefined ? undefined : await eventOf(webhooks, endpointId, eventId);
      if (eventId !== undefined && event === undefined) {
        const why =
          'the event is not among the last attempts at a payment’s event; resend by since';
        return reject(reply, 'WEBHOOK_NOT_ALLOWED', [why]);
      }
      const command = {
        kind: 'resend',
        endpointId,
        ...(since !== undefined && { since }),
        ...(event !== undefined && { event }),
      } as const;
      const done = await handled(webhooks, principal, command, reply);
      if (done === undefined) return reply;
      const after = endpointAfter(done, endpointId);
      return sendJson(reply.code(202), await showEndpoint(webhooks.deliveries, after));
    },
  }),
  listWebhookAttempts: route({
    request: { endpointId: true, query: AttemptParameters },
    responses: { ...okJson(WebhookAttemptList), ...NO_ENDPOINT, ...FAULT },
    handle: async ({ webhooks }, { principal, endpointId, query }, reply) => {
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      return endpoint === undefined ? reply : sendAttempts(webhooks, endpointId, query, reply);
    },
  }),
  listAllWebhookEndpoints: route({
    request: { allMerchants: true, query: AllEndpointsParameters },
    responses: okJson(MerchantEndpointList),
    handle: async ({ webhooks }, { query: { merchant } }, reply) => {
      const { merchantIds } =
        merchant === undefined
          ? await merchantsWithEndpoints(webhooks.store)
          : { merchantIds: [merchant] };
      const endpoints: object[] = [];
      for (const merchantId of merchantIds) {
        const own = await readEndpoints(webhooks.store, merchantId);
        for (const one of own.endpoints)
          endpoints.push({ merchantId, ...(await showEndpoint(webhooks.deliveries, one)) });
      }
      return sendJson(reply, { endpoints });
    },
  }),
  listAllWebhookAttempts: route({
    request: { allMerchants: true, endpointId: true, query: AttemptParameters },
    responses: okJson(WebhookAttemptList),
    handle: ({ webhooks }, { endpointId, query }, reply) =>
      sendAttempts(webhooks, endpointId, query, reply),
  }),
} satisfies Partial<RoutesOf<'command-api', WebhookDeps>>;

/** The payment's event of an attempt; undefined where no kept attempt has it. */
const eventOf = async ({ deliveries }: Webhooks, endpointId: string, eventId: string) => {
  const [attempt] = await deliveries.attempts(endpointId, 1, eventId);
  if (attempt === undefined || attempt.paymentId === null || attempt.revision === null)
    return undefined;
  return { eventId, paymentId: attempt.paymentId, revision: attempt.revision };
};
