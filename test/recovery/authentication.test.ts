/** gaps §21: while the shopper is waited for, the provider is asked every minute, and fenced at the end. */
import { expect, test } from '@jest/globals';
import { createInFlight } from '../../command-api/in-flight.ts';
import type { ActionRequired, Approved, Provider } from '../../command-api/provider/port.ts';
import { createUnresolved } from '../../command-api/recovery/unresolved.ts';
import { startBudget } from '../../command-api/request-budget.ts';
import { createQueues } from '../../shared/runtime/scheduling.ts';
import { create } from '../support/commands.ts';
import { manualClock } from '../support/manual-clock.ts';
import { memoryEventStore } from '../support/memory-event-store.ts';
import { paymentLogOver } from '../support/payment-log.ts';
import { silent } from '../support/silent-log.ts';

const MINUTE_MS = 60_000;
const WAITS_MS = 15 * MINUTE_MS;
const WAITING: ActionRequired = { outcome: 'ACTION_REQUIRED', url: 'https://pay.example' };
const CONTEXT = { actor: 'tester', requestId: 'r', correlationId: 'r', causationId: 'r' };

/** A payment that waits from 0 on; `looks` and `fences` are the times at which the provider was asked. */
const waiting = async (said: () => ActionRequired | Approved) => {
  const clock = manualClock();
  const looks: number[] = [];
  const fences: number[] = [];
  const provider: Pick<Provider, 'lookUp' | 'fence'> = {
    lookUp: async () => {
      looks.push(clock.nowMs());
      return said();
    },
    fence: async () => {
      fences.push(clock.nowMs());
      return { outcome: 'FENCED' };
    },
  };
  const { nowMs } = clock;
  const paymentLog = paymentLogOver(memoryEventStore(), { nowMs });
  const times = { providerTimeoutMs: 5_000, authenticationTimeoutMs: WAITS_MS };
  const inFlight = createInFlight({ sharedStore: false, ...times, nowMs, logger: silent });
  const unresolved = createUnresolved({
    ...clock,
    paymentLog,
    provider: provider as Provider,
    queues: createQueues(),
    inFlight,
    logger: { info() {}, warn() {}, error() {} },
    providers: ['simulator'],
    delaysMs: [1_000],
  });
  const command = create();
  const { paymentId, operationId } = command;
  const created = await paymentLog.execute(paymentId, command, CONTEXT, startBudget(1_000));
  if (created.kind !== 'done') throw new Error(created.kind);
  const expiresAt = inFlight.waitsUntil(WAITING);
  const waits = { kind: 'authenticate', operationId, expiresAt } as const;
  unresolved.add(paymentId, operationId, await paymentLog.record(created.payment, waits));
  const status = async () => (await paymentLog.load(paymentId, 'store'))?.state.status;
  return { clock, looks, fences, status };
};

test('once a minute, and at the end by the fence', async () => {
  const { clock, looks, fences, status } = await waiting(() => WAITING);
  await clock.advance(WAITS_MS - 1);
  expect(looks).toHaveLength(15);
  for (const [n, at] of looks.entries()) {
    expect(at).toBeGreaterThanOrEqual(n * MINUTE_MS);
    expect(at).toBeLessThan(n * (MINUTE_MS + 200) + 1);
  }
  expect([fences, await status()]).toEqual([[], 'PENDING']);
  await clock.advance(200);
  expect([fences.length, await status(), clock.timers()]).toEqual([1, 'FAILED', 0]);
});

test('what the shopper did is known within a minute, and the provider is asked no more', async () => {
  let comesMs = Number.POSITIVE_INFINITY;
  const { clock, looks, fences, status } = await waiting(() =>
    clock.nowMs() < comesMs ? WAITING : { outcome: 'APPROVED' },
  );
  comesMs = 5 * MINUTE_MS + 30_000;
  await clock.advance(comesMs + MINUTE_MS + 200);
  expect([await status(), looks.length]).toEqual(['AUTHORIZED', 7]);
  await clock.advance(WAITS_MS);
  expect([looks.length, fences]).toEqual([7, []]);
});
