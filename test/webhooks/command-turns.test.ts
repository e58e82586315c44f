/**
 * The commands of a merchant's webhook endpoints within the budgets of their requests (gaps §7), and
 * under the older idempotency secret.
 */
import { describe, expect, test } from '@jest/globals';
import { RevisionConflict } from '../../shared/event-store/errors.ts';
import { createIdentities } from '../../shared/http/idempotency.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import type { WebhookEvent } from '../../shared/payment/webhook-events.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { againMs, type EndpointCommand } from '../../webhooks/endpoints/decide.ts';
import { handleEndpointCommand } from '../../webhooks/endpoints/endpoint-log.ts';
import { handled, type StoredEvent, type WebhookDeps } from '../../webhooks/endpoints/requests.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { silentLog } from '../support/silent-log.ts';
import { CONTEXT } from '../support/webhook-world.ts';

const principal = { merchantId: 'm_1', actor: 'tester', scopes: undefined };
const endpoint = {
  ...{ endpointId: `we_${'0'.repeat(26)}`, merchantId: 'm_1', url: 'https://shop.example/' },
  apiVersion: 'v1' as const,
};

type Options = {
  store: WebhookDeps['webhooks']['store'];
  secrets?: [string, ...string[]];
  budgetMs?: number;
};

/** The response to a registration under a key. */
const respond = async ({ store, secrets = ['a secret'], budgetMs = 60_000 }: Options) => {
  const app = buildApp({ log: silentLog, metrics: createMetrics(), maxInFlight: 10 });
  const webhooks = { store } as WebhookDeps['webhooks'];
  const commands = { identities: createIdentities(secrets) };
  const deps = { webhooks, commands, requestBudgetMs: budgetMs };
  const keyed = { key: 'a-key', request: { url: endpoint.url } };
  app.post('/', async (_request, reply) => {
    const arrived = { principal, arrivedAtMs: performance.now() };
    const show = (stored: StoredEvent) => ({ details: stored.endpoint.endpointId });
    const command = { kind: 'create', endpoint } as const;
    return handled(deps, arrived, reply, { command, keyed, show });
  });
  const { statusCode, headers, body } = await app.inject({ method: 'POST', url: '/' });
  const { details } = JSON.parse(body);
  return { statusCode, details, retryAfter: headers['retry-after'], headers };
};

test('conflicts that outlast the budget are 503', async () => {
  const append = async () => {
    throw new RevisionConflict('another process was faster');
  };
  const store = { ...memoryEventStore(), append };
  expect(await respond({ store, budgetMs: 30 })).toMatchObject({
    ...{ statusCode: 503, retryAfter: '1' },
  });
});

test('a request whose budget is spent is 503 and stores nothing', async () => {
  const store = memoryEventStore();
  expect(await respond({ store, budgetMs: 0 })).toMatchObject({
    ...{ statusCode: 503, retryAfter: '1' },
    details: ['the turn of this request did not come in time'],
  });
  expect(await store.end()).toBeNull();
});

test.each<[string, number, EndpointCommand]>([
  ['tests of an endpoint', 4, { kind: 'test', endpointId: endpoint.endpointId }],
  [
    'changes',
    19,
    { kind: 'resend', endpointId: endpoint.endpointId, since: '2000-01-01T00:00:00.000Z' },
  ],
])(
  'of %s that several processes request at a time, %d a minute are stored',
  async (_, max, command) => {
    const store = memoryEventStore();
    const order = (one: EndpointCommand) =>
      handleEndpointCommand(store, { merchantId: 'm_1', command: one, context: CONTEXT });
    await order({ kind: 'create', endpoint });
    const requested = () => order(command);
    const all = await Promise.all(Array.from({ length: max + 2 }, requested));
    const kinds = all.map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'stored')).toHaveLength(max);
    expect(kinds.filter((kind) => kind === 'too soon')).toHaveLength(2);
    const gone = await order({ ...endpoint, kind: 'delete' });
    expect(gone.kind).toBe('stored');
  },
);

describe('when it may be done again', () => {
  const atMs = Date.parse('2026-01-01T00:00:00.000Z');
  const { endpointId } = endpoint;
  const test1 = { type: 'WebhookTestRequested', data: { endpointId } } as const;
  const other = { type: 'WebhookTestRequested', data: { endpointId: 'we_other' } } as const;
  const changed = { type: 'WebhookEndpointChanged', data: { endpointId } } as const;
  const times = (event: WebhookEvent, count: number) =>
    Array.from({ length: count }, () => ({ event, time: new Date(atMs).toISOString() }));
  const command = { kind: 'test', endpointId } as const;

  test.each<[string, EndpointCommand, ReturnType<typeof times>, number, number]>([
    ['a fourth test', command, times(test1, 3), 0, 0],
    ['a fifth', command, times(test1, 4), 59_000, 1_000],
    ['after a minute', command, times(test1, 4), 60_000, 0],
    ['by a clock that is behind', command, times(test1, 4), -5_000, 55_000],
    ['by one that was put back for hours', command, times(test1, 4), -3_600_000, 0],
    [
      'tests of another endpoint, and changes',
      command,
      [...times(other, 4), ...times(changed, 20)],
      0,
      0,
    ],
    [
      'the 20th change',
      { kind: 'resend', endpointId },
      [...times(changed, 19), ...times(test1, 9)],
      0,
      0,
    ],
    ['the 21st', { kind: 'resend', endpointId }, times(changed, 20), 0, 60_000],
    ['a deletion', { kind: 'delete', endpointId }, times(changed, 20), 0, 0],
    [
      'an end by the service',
      { kind: 'disable', endpointId, reason: 'GONE' },
      times(changed, 20),
      0,
      0,
    ],
  ])('%s', (_name, command, events, afterMs, waitsMs) => {
    expect(againMs(command, events, atMs + afterMs)).toBe(waitsMs);
  });
});

test('ADR-0105: a repeat is recognised by the older secret', async () => {
  const store = memoryEventStore();
  await respond({ store, secrets: ['older'] });
  const repeat = await respond({ store, secrets: ['newer', 'older'] });
  expect(repeat).toMatchObject({ statusCode: 200, details: endpoint.endpointId });
  expect(repeat.headers).toMatchObject({ 'idempotent-replayed': 'true' });
});
