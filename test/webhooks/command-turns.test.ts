/**
 * The commands of a merchant's webhook endpoints within the budgets of their requests (gaps §7), and
 * under the older idempotency secret.
 */
import { expect, test } from '@jest/globals';
import { handled, type Stored, type WebhookDeps } from '../../command-api/endpoints/requests.ts';
import { createIdentities } from '../../command-api/idempotency.ts';
import { RevisionConflict } from '../../shared/event-store/errors.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { handleEndpointCommand } from '../../shared/webhooks/endpoint-log.ts';
import { endpointStreamOf } from '../../shared/webhooks/endpoints.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { CONTEXT, registerEndpoint } from '../support/webhook-world.ts';

const { log } = createLogger({ level: 'silent', destination: 'stdout' });
const principal = { merchantId: 'm_1', actor: 'tester', scopes: undefined };
const endpoint = {
  ...{ endpointId: `we_${'0'.repeat(26)}`, merchantId: 'm_1', url: 'https://shop.example/' },
  apiVersion: 'v1' as const,
};

type Options = {
  store: WebhookDeps['webhooks']['store'];
  /** Another request of the merchant has its turn. */
  isBusy?: boolean;
  secrets?: [string, ...string[]];
  budgetMs?: number;
};

/** The response to a registration under a key. */
const respond = async ({
  store,
  isBusy = false,
  secrets = ['a secret'],
  budgetMs = 60_000,
}: Options) => {
  const app = buildApp({ log, metrics: createMetrics(), maxInFlight: 10 });
  const webhooks = { store } as WebhookDeps['webhooks'];
  const commands = { identities: createIdentities(secrets) };
  if (isBusy) app.lifecycle.turns.endpoints.take('m_1');
  const deps = { webhooks, commands, requestBudgetMs: budgetMs, waiting: new Set<never>() };
  const keyed = { key: 'a-key', request: { url: endpoint.url } };
  app.post('/', async (_request, reply) => {
    const arrived = { principal, arrivedAtMs: performance.now() };
    const show = (stored: Stored) => ({ details: stored.endpoint.endpointId });
    return handled(deps, arrived, { kind: 'create', endpoint }, reply, show, keyed);
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

test('a request whose turn comes too late is 503 and stores nothing', async () => {
  const store = memoryEventStore();
  expect(await respond({ store, isBusy: true, budgetMs: 30 })).toMatchObject({
    ...{ statusCode: 503, retryAfter: '1' },
    details: ['the turn of this request did not come in time'],
  });
  expect(await store.end()).toBeNull();
});

test('of tests that several processes request at a time, four a minute are stored', async () => {
  const store = memoryEventStore();
  const endpointId = await registerEndpoint(store, 'm_1', endpoint.url);
  const requested = (nowMs: number) =>
    handleEndpointCommand(store, 'm_1', { kind: 'test', endpointId, nowMs }, CONTEXT);
  const nowMs = Date.now();
  const all = await Promise.all(Array.from({ length: 6 }, () => requested(nowMs)));
  const kinds = all.map(({ kind }) => kind);
  expect(kinds.filter((kind) => kind === 'stored')).toHaveLength(4);
  expect(kinds.filter((kind) => kind === 'too soon')).toHaveLength(2);
  const [, first] = await store.readStream(endpointStreamOf('m_1'));
  const after = async (ms: number) => requested(Date.parse(first?.time ?? '') + ms);
  expect(await after(59_000)).toEqual({ kind: 'too soon', againMs: 1_000 });
  // A process whose clock is behind waits as well; one that was put back for hours does not.
  expect(await after(-5_000)).toMatchObject({ kind: 'too soon' });
  expect(await after(-3_600_000)).toMatchObject({ kind: 'stored' });
  expect(await after(60_100)).toMatchObject({ kind: 'stored' });
});

test('ADR-0105: a repeat is recognised by the older secret', async () => {
  const store = memoryEventStore();
  await respond({ store, secrets: ['older'] });
  const repeat = await respond({ store, secrets: ['newer', 'older'] });
  expect(repeat).toMatchObject({ statusCode: 200, details: endpoint.endpointId });
  expect(repeat.headers).toMatchObject({ 'idempotent-replayed': 'true' });
});
