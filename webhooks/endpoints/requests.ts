import type { FastifyReply } from 'fastify';
import type { z } from 'zod';
import type { ControlReads } from '../../shared/event-store/control-stream.ts';
import { RevisionConflict } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { RETRY_LATER, reject } from '../../shared/http/errors.ts';
import { type Identities, KEY_REUSED, recognisedBy } from '../../shared/http/idempotency.ts';
import { contextOf, type Principal, senderOf } from '../../shared/http/request.ts';
import { BudgetSpent, startBudget, withinBudget } from '../../shared/http/request-budget.ts';
import { type Input, type RequestForm, sendJson } from '../../shared/http/route.ts';
import type { Recognised } from '../../shared/payment/state.ts';
import { ReadModelsUnavailable } from '../../shared/read-models/errors.ts';
import { firstLineOf } from '../../shared/runtime/error-text.ts';
import { type DeliveryRow, parseDeliveryRow, rowStatus } from '../delivery/delivery-row.ts';
import { isWanted, SUBSCRIBABLE_TYPES } from '../message.ts';
import { endpointKey, secretTextOf, type WebhookSecret } from '../signer.ts';
import type { DeliveryStore } from '../store/port.ts';
import type { AddressKindOf } from './addresses.ts';
import type { AttemptParameters, WebhookEndpoint } from './contract.ts';
import type { EndpointCommand } from './decide.ts';
import { type Handled, handleEndpointCommand, readEndpoints } from './endpoint-log.ts';
import { CHANGES, type Endpoint, TESTS } from './endpoints.ts';

export type WebhookDeps = {
  webhooks: {
    store: ControlReads & Pick<EventStore, 'append' | 'end'>;
    deliveries: Pick<DeliveryStore, 'load' | 'attempts'>;
    secret: WebhookSecret;
    kindOf: AddressKindOf;
  };
  commands: { identities: Identities };
  requestBudgetMs: number;
  stopping?: AbortSignal;
};
export type Webhooks = WebhookDeps['webhooks'];

const unavailable = (error: unknown): never => {
  const message = `the state of webhook deliveries cannot be read: ${firstLineOf(error)}`;
  throw new ReadModelsUnavailable(message, { cause: error });
};

export const readableDeliveries = (own: Webhooks['deliveries']): typeof own => ({
  load: (...args) => own.load(...args).catch(unavailable),
  attempts: (...args) => own.attempts(...args).catch(unavailable),
});

export type StoredEvent = Extract<Handled, { kind: 'stored' }>;

export type Keyed<T> = { key: string | undefined; request: T };

type Arrived = Pick<Input<RequestForm>, 'principal' | 'arrivedAtMs'>;

const requestOf = (
  { identities }: { identities: Identities },
  merchantId: string,
  command: EndpointCommand,
  { key, request }: Keyed<object>,
): Recognised | undefined => {
  if (key === undefined) return undefined;
  const route = `webhooks ${command.kind}`;
  const endpointId = command.kind === 'create' ? '' : command.endpointId;
  return recognisedBy(identities, ({ fingerprintOf, keyHashOf }) => ({
    fingerprint: fingerprintOf({ route, endpointId, ...request }),
    keyHash: keyHashOf(merchantId, route, endpointId, key),
  }));
};

const outOfTime = (reply: FastifyReply, hadItsTurn: boolean): FastifyReply => {
  const why = hadItsTurn
    ? 'it is not known whether anything was stored'
    : 'the turn of this request did not come in time';
  return reject(reply, 'SERVICE_UNAVAILABLE', [why], RETRY_LATER);
};

const TOO_SOON = {
  tests: `an endpoint is sent ${TESTS.max} tests a minute; try again later`,
  changes: `the endpoints of a merchant are changed ${CHANGES.max} times a minute; try again later`,
};

const rejectOutcome = (
  outcome: Exclude<Handled, StoredEvent>,
  { kind }: EndpointCommand,
  reply: FastifyReply,
): FastifyReply => {
  if (outcome.kind === 'key reused') return reject(reply, 'IDEMPOTENCY_KEY_REUSED', [KEY_REUSED]);
  if (outcome.kind === 'unknown endpoint') return reject(reply, 'WEBHOOK_ENDPOINT_NOT_FOUND');
  if (outcome.kind === 'too soon')
    return reject(reply, 'RATE_LIMITED', [TOO_SOON[kind === 'test' ? 'tests' : 'changes']], {
      'retry-after': String(Math.ceil(outcome.againMs / 1000)),
    });
  // With one endpoint too many there is no endpoint that could forbid it.
  const code = kind === 'create' ? 'BUSINESS_RULE_VIOLATION' : 'WEBHOOK_NOT_ALLOWED';
  return reject(reply, code, [outcome.why]);
};

/** Makes the body of the response, in place of the endpoint's own; `row` is its delivery before. */
export type Show = (stored: StoredEvent, row: DeliveryRow | undefined) => object | Promise<object>;
type Commanded = { command: EndpointCommand; keyed?: Keyed<object>; show?: Show };

export const handled = async (
  { webhooks, commands, requestBudgetMs, stopping }: WebhookDeps,
  { principal, arrivedAtMs }: Arrived,
  reply: FastifyReply,
  { command, keyed, show = ({ endpoint }, row) => endpointBody(endpoint, row) }: Commanded,
): Promise<FastifyReply> => {
  // Read before anything is stored: a response that fails later would deny that.
  const row =
    command.kind === 'create' || command.kind === 'test'
      ? undefined
      : await deliveryOf(webhooks.deliveries, command.endpointId);
  const { merchantId } = principal;
  const context = contextOf(senderOf(principal, reply));
  const request = keyed && requestOf(commands, merchantId, command, keyed);
  const budget = startBudget(requestBudgetMs, arrivedAtMs);
  if (budget.leftMs() === 0) return outOfTime(reply, false);
  const { store } = webhooks;
  const task = handleEndpointCommand(store, { merchantId, command, context, request }, budget);
  try {
    const outcome = await withinBudget(task, budget, stopping);
    if (outcome.kind !== 'stored') return rejectOutcome(outcome, command, reply);
    if (outcome.isRepeat) reply.header('idempotent-replayed', 'true');
    return sendJson(reply, await show(outcome, row));
  } catch (error) {
    if (error instanceof RevisionConflict) return outOfTime(reply, false);
    if (error instanceof BudgetSpent) return outOfTime(reply, true);
    throw error;
  }
};

/** Undefined, and rejected, for another merchant's as for an unknown one. */
export const ownEndpoint = async (
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

const timeOf = (ms: number | null | undefined): string | null =>
  ms === null || ms === undefined ? null : new Date(ms).toISOString();

const endpointBody = (endpoint: Endpoint, row: DeliveryRow | undefined): WebhookEndpoint => {
  const { endpointId, url, description, apiVersion, disabled, createdAt, updatedAt } = endpoint;
  const { oldSecretExpiresAt } = endpoint;
  return {
    id: endpointId,
    url,
    eventTypes: SUBSCRIBABLE_TYPES.filter((type) => isWanted(endpoint, type)),
    ...(description !== undefined && { description }),
    apiVersion,
    status: rowStatus(endpoint, row),
    failingSince: timeOf(row?.failingSince),
    disabledReason: disabled?.reason ?? null,
    oldestWaiting: timeOf(row?.oldestWaiting),
    ...(oldSecretExpiresAt !== undefined && { oldSecretExpiresAt }),
    createdAt,
    updatedAt,
  };
};

const deliveryOf = async (deliveries: Webhooks['deliveries'], endpointId: string) => {
  const stored = await deliveries.load(endpointId);
  return stored && parseDeliveryRow(stored.text);
};

export const currentEndpointBody = async ({ deliveries }: Webhooks, endpoint: Endpoint) =>
  endpointBody(endpoint, await deliveryOf(deliveries, endpoint.endpointId));

export const withSecret = async ({ secret }: Webhooks, endpoint: Endpoint, row?: DeliveryRow) => {
  const { endpointId, secretNumber } = endpoint;
  const key = endpointKey(await secret(), endpointId, secretNumber);
  return { ...endpointBody(endpoint, row), secret: secretTextOf(key) };
};

export const sendAttempts = async (
  { deliveries }: Webhooks,
  endpointId: string,
  { limit, eventId, cursor: before }: z.output<typeof AttemptParameters>,
  reply: FastifyReply,
): Promise<FastifyReply> => {
  const found = await deliveries.attempts(endpointId, { limit: limit + 1, eventId, before });
  const shown = found.slice(0, limit);
  return sendJson(reply, {
    attempts: shown.map(({ attempt }) => attempt),
    next: found.length > limit ? String(shown.at(-1)?.number) : null,
  });
};

export const eventOf = async ({ deliveries }: Webhooks, endpointId: string, eventId: string) => {
  const [found] = await deliveries.attempts(endpointId, { limit: 1, eventId });
  if (found === undefined) return undefined;
  const { attempt } = found;
  if (attempt.paymentId === null || attempt.revision === null) return undefined;
  return { eventId, paymentId: attempt.paymentId, revision: attempt.revision };
};
