/** A request becomes an event, which the deliverer follows. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { UnreadableStream } from '../../shared/event-store/errors.ts';
import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { NoParameters } from '../../shared/http/fields.ts';
import {
  BODY_NOT_OBJECT,
  invalid,
  isObject,
  parseIdempotencyKey,
  type Read,
  readJsonBody,
  withoutNulls,
} from '../../shared/http/request.ts';
import {
  asJson,
  okJson,
  type RoutesOf,
  readBy,
  routeWith,
  sendJson,
} from '../../shared/http/route.ts';
import { inTurn } from '../../shared/http/server/shares.ts';
import { newUlid } from '../../shared/runtime/ids.ts';
import { writtenUrl } from './addresses.ts';
import * as contract from './contract.ts';
import { merchantsWithEndpoints, readableEndpoints, readEndpoints } from './endpoint-log.ts';
import type { Endpoint } from './endpoints.ts';
import {
  currentEndpointBody,
  eventOf,
  handled,
  type Keyed,
  ownEndpoint,
  type Show,
  sendAttempts,
  type WebhookDeps,
  type Webhooks,
  withSecret,
} from './requests.ts';

const readAs =
  <T>(schema: z.ZodType<T>) =>
  (request: FastifyRequest): Read<T> => {
    const json: Read<unknown> = readJsonBody(request);
    if (!json.ok) return json;
    const body = json.value === undefined ? {} : json.value;
    return isObject(body) ? readBy(schema, withoutNulls(body)) : invalid(BODY_NOT_OBJECT);
  };

const keyed =
  <T>(read: (request: FastifyRequest) => Read<T>) =>
  (request: FastifyRequest): Read<Keyed<T>> => {
    const header = parseIdempotencyKey(request.raw.rawHeaders);
    if (!header.ok) return header;
    const body = read(request);
    return body.ok ? { ok: true, value: { key: header.key, request: body.value } } : body;
  };

const readChange = readAs(contract.WebhookEndpointChange);
const readTest = keyed(() => ({ ok: true, value: {} }));

const keyedBody = <T>(schema: z.ZodType<T>, required = true) => ({
  read: keyed(readAs(schema)),
  body: { schema, required },
});

const endpointsOf = async ({ store }: Webhooks, merchantIds: readonly string[]) => {
  const endpoints: Endpoint[] = [];
  const unreadable: string[] = [];
  for (const merchantId of merchantIds) {
    const own = await readableEndpoints(store, merchantId);
    if (own instanceof UnreadableStream) unreadable.push(merchantId);
    else endpoints.push(...own.endpoints);
  }
  return { endpoints, unreadable };
};

const NOT_READABLE = [
  'the webhook endpoints of a merchant cannot be read, and it may be one of them',
];

const HOUR_MS = 3_600_000;

/** Each reads all events of its merchant's endpoints. */
const commanding =
  <I>(handle: (api: WebhookDeps, input: I, reply: FastifyReply) => Promise<FastifyReply>) =>
  async (api: WebhookDeps, input: I, reply: FastifyReply): Promise<FastifyReply> =>
    (await inTurn('endpoints', reply, () => handle(api, input, reply))) ?? reply;

const route = routeWith<WebhookDeps>();

export const WEBHOOK_ROUTES = {
  createWebhookEndpoint: route({
    request: keyedBody(contract.WebhookEndpointRequest),
    responses: { 201: asJson(contract.WebhookEndpointWithSecret) },
    handle: commanding(async (api, input, reply) => {
      const { webhooks } = api;
      const { principal, content } = input;
      const { url, eventTypes, description } = content.request;
      const details = contract.urlDetails(url, webhooks.kindOf);
      if (details.length > 0) return reject(reply, 'INVALID_REQUEST', details);
      await webhooks.secret();
      const after = await webhooks.store.end();
      const endpoint = {
        endpointId: `we_${newUlid()}`,
        merchantId: principal.merchantId,
        url: writtenUrl(url),
        eventTypes,
        description,
        apiVersion: 'v1',
        after: after ?? undefined,
      } as const;
      const command = { kind: 'create', endpoint } as const;
      const show: Show = (done) => withSecret(webhooks, done.endpoint);
      return handled(api, input, reply.code(201), { command, show, keyed: content });
    }),
  }),
  listWebhookEndpoints: route({
    request: { query: NoParameters },
    responses: okJson(contract.WebhookEndpointList),
    handle: async ({ webhooks }, { principal }, reply) => {
      const { endpoints } = await readEndpoints(webhooks.store, principal.merchantId);
      const show = (one: Endpoint) => currentEndpointBody(webhooks, one);
      return sendJson(reply, { endpoints: await Promise.all(endpoints.map(show)) });
    },
  }),
  getWebhookEndpoint: route({
    request: { endpointId: true },
    responses: okJson(contract.WebhookEndpoint),
    handle: async ({ webhooks }, { principal, endpointId }, reply) => {
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      if (endpoint === undefined) return reply;
      return sendJson(reply, await currentEndpointBody(webhooks, endpoint));
    },
  }),
  changeWebhookEndpoint: route({
    request: {
      endpointId: true,
      read: readChange,
      body: { schema: contract.WebhookEndpointChange, required: true },
    },
    responses: okJson(contract.WebhookEndpoint),
    handle: commanding(async (api, input, reply) => {
      const { webhooks } = api;
      const { endpointId, content } = input;
      const details = contract.urlDetails(content.url, webhooks.kindOf);
      if (details.length > 0) return reject(reply, 'INVALID_REQUEST', details);
      const end = await webhooks.store.end();
      const url = content.url && writtenUrl(content.url);
      const command = { kind: 'change', endpointId, end, ...content, url } as const;
      return handled(api, input, reply, { command });
    }),
  }),
  deleteWebhookEndpoint: route({
    request: { endpointId: true },
    responses: okJson(contract.WebhookEndpoint),
    handle: commanding((api, input, reply) => {
      const command = { kind: 'delete', endpointId: input.endpointId } as const;
      return handled(api, input, reply, { command });
    }),
  }),
  rotateWebhookSecret: route({
    request: { endpointId: true, ...keyedBody(contract.WebhookRotation, false) },
    responses: okJson(contract.WebhookEndpointWithSecret),
    handle: commanding(async (api, input, reply) => {
      const { webhooks } = api;
      const { endpointId, content } = input;
      await webhooks.secret();
      const expiresMs = Date.now() + content.request.oldExpiresInHours * HOUR_MS;
      const oldExpiresAt = new Date(expiresMs).toISOString();
      const command = { kind: 'rotate', endpointId, oldExpiresAt } as const;
      const show: Show = ({ endpoint }, row) => withSecret(webhooks, endpoint, row);
      return handled(api, input, reply, { command, show, keyed: content });
    }),
  }),
  testWebhookEndpoint: route({
    request: { endpointId: true, read: readTest },
    responses: { 202: asJson(contract.WebhookTest) },
    handle: commanding(async (api, input, reply) => {
      const { endpointId, content } = input;
      const command = { kind: 'test', endpointId } as const;
      const show: Show = ({ events }) => ({ eventId: events.at(-1)?.id });
      return handled(api, input, reply.code(202), { command, show, keyed: content });
    }),
  }),
  resendWebhookEvents: route({
    request: { endpointId: true, ...keyedBody(contract.WebhookResend) },
    responses: { 202: asJson(contract.WebhookEndpoint) },
    handle: commanding(async (api, input, reply) => {
      const { webhooks } = api;
      const { principal, endpointId, content } = input;
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      if (endpoint === undefined) return reply;
      const { since, eventId } = content.request;
      const event =
        eventId === undefined ? undefined : await eventOf(webhooks, endpointId, eventId);
      if (eventId !== undefined && event === undefined) {
        const why =
          'the event is not among the last attempts at a payment’s event; resend by since';
        return reject(reply, 'WEBHOOK_NOT_ALLOWED', [why]);
      }
      const command = { kind: 'resend', endpointId, since, event } as const;
      return handled(api, input, reply.code(202), { command, keyed: content });
    }),
  }),
  listWebhookAttempts: route({
    request: { endpointId: true, query: contract.AttemptParameters },
    responses: okJson(contract.WebhookAttemptList),
    handle: async ({ webhooks }, { principal, endpointId, query }, reply) => {
      const endpoint = await ownEndpoint(webhooks, principal, endpointId, reply);
      return endpoint === undefined ? reply : sendAttempts(webhooks, endpointId, query, reply);
    },
  }),
  listAllWebhookEndpoints: route({
    request: { allMerchants: true, query: contract.AllEndpointsParameters },
    responses: okJson(contract.MerchantEndpointList),
    handle: async ({ webhooks }, { query: { merchant } }, reply) => {
      const merchantIds =
        merchant === undefined ? await merchantsWithEndpoints(webhooks.store) : [merchant];
      const { endpoints, unreadable } = await endpointsOf(webhooks, merchantIds);
      const shown: object[] = [];
      for (const one of endpoints) {
        const { merchantId } = one;
        shown.push({ merchantId, ...(await currentEndpointBody(webhooks, one)) });
      }
      return sendJson(reply, { endpoints: shown, ...(unreadable.length > 0 && { unreadable }) });
    },
  }),
  listAllWebhookAttempts: route({
    request: { allMerchants: true, endpointId: true, query: contract.AttemptParameters },
    responses: okJson(contract.WebhookAttemptList),
    handle: async ({ webhooks }, { endpointId, query }, reply) => {
      if ((await webhooks.deliveries.load(endpointId)) === undefined) {
        const merchantIds = await merchantsWithEndpoints(webhooks.store);
        const { endpoints, unreadable } = await endpointsOf(webhooks, merchantIds);
        const isKnown = endpoints.some((one) => one.endpointId === endpointId);
        if (!isKnown && unreadable.length > 0)
          return reject(reply, 'SERVICE_UNAVAILABLE', NOT_READABLE, RETRY_LATER);
        if (!isKnown) return reject(reply, 'WEBHOOK_ENDPOINT_NOT_FOUND');
      }
      return sendAttempts(webhooks, endpointId, query, reply);
    },
  }),
} satisfies Partial<RoutesOf<'command-api', WebhookDeps>>;
