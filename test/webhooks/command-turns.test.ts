/** The commands of a merchant's webhook endpoints within the budgets of their requests (gaps §7). */
import { expect, test } from '@jest/globals';
import { createQueues } from '../../command-api/in-flight.ts';
import { handled, type WebhookDeps } from '../../command-api/webhooks/endpoint-requests.ts';
import { RevisionConflict } from '../../shared/event-store/errors.ts';
import { memoryEventStore } from '../../shared/event-store/memory/event-store.ts';
import { buildApp } from '../../shared/http/server/app.ts';
import { createLogger } from '../../shared/runtime/log.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
import { endpointStreamOf } from '../../shared/webhooks/endpoints.ts';

const { log } = createLogger({ level: 'silent', destination: 'stdout' });
const principal = { merchantId: 'm_1', actor: 'tester', scopes: undefined };
const endpoint = {
  ...{ endpointId: `we_${'0'.repeat(26)}`, merchantId: 'm_1', url: 'https://shop.example/' },
  apiVersion: 'v1' as const,
};

type Deps = Pick<WebhookDeps, 'commands'> & { store: WebhookDeps['webhooks']['store'] };

/** The response to a registration that may take 30 ms. */
const respond = async ({ store, commands }: Deps) => {
  const app = buildApp({ log, metrics: createMetrics(), maxInFlight: 10 });
  const webhooks = { store } as WebhookDeps['webhooks'];
  const deps = { webhooks, commands, requestBudgetMs: 30, waiting: new Set<never>() };
  app.post('/', async (_request, reply) => {
    const arrived = { principal, arrivedAtMs: performance.now() };
    await handled(deps, arrived, { kind: 'create', endpoint }, reply);
    return reply;
  });
  const { statusCode, headers, body } = await app.inject({ method: 'POST', url: '/' });
  return { statusCode, retryAfter: headers['retry-after'], details: JSON.parse(body).details };
};

test('conflicts that outlast the budget are 503, and the same request is welcome later', async () => {
  const store = memoryEventStore();
  const append = async () => {
    throw new RevisionConflict('another process was faster');
  };
  expect(
    await respond({ store: { ...store, append }, commands: { queues: createQueues() } }),
  ).toEqual({ statusCode: 503, retryAfter: '1', details: expect.anything() });
});

test('a request whose turn comes too late is 503 and stores nothing', async () => {
  const store = memoryEventStore();
  const queues = createQueues();
  const first = Promise.withResolvers<void>();
  void queues.run(endpointStreamOf('m_1'), () => first.promise);
  expect(await respond({ store, commands: { queues } })).toEqual({
    ...{ statusCode: 503, retryAfter: '1' },
    details: ['the turn of this request did not come in time'],
  });
  first.resolve();
  await queues.idle();
  expect(await store.end()).toBeNull();
});
