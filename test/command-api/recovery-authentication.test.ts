/** gaps §21: while the shopper is waited for, the provider is asked now and then, and fenced at the end. */
import { expect, test } from '@jest/globals';
import type { CommandDeps } from '../../command-api/deps.ts';
import { createInFlight } from '../../command-api/in-flight.ts';
import { askAboutNeverSent } from '../../command-api/recovery/contradiction.ts';
import { createUnresolved } from '../../command-api/recovery/unresolved.ts';
import type { ActionRequired, Approved, Provider } from '../../providers/port.ts';
import { startBudget } from '../../shared/http/request-budget.ts';
import { createMetrics } from '../../shared/runtime/metrics.ts';
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
const waiting = async (said: () => ActionRequired | Approved, givesNotices = false) => {
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
  const own = { sharedStore: false, metrics: createMetrics(), logger: silent };
  const inFlight = createInFlight({ ...own, ...times, nowMs });
  const errors: string[] = [];
  const parts = {
    paymentLog,
    provider: provider as Provider,
    queues: createQueues(),
    logger: { info() {}, warn() {}, error: (_: object, message: string) => errors.push(message) },
  };
  const unresolved = createUnresolved({
    ...clock,
    ...parts,
    inFlight,
    providers: ['simulator'],
    givesNotices: () => givesNotices,
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
  /** As a reconciliation does that finds an approval where the log has a fence. */
  const compare = () =>
    askAboutNeverSent({ ...parts, unresolved } as unknown as CommandDeps, {
      ...{ paymentId, operationId },
    });
  return { clock, looks, fences, status, compare, unresolved, errors };
};

const EACH_MINUTE = Array.from({ length: 14 }, (_, n) => n + 1);

test.each([
  ['each minute', false, EACH_MINUTE],
  ['beside notices after 1 and 5 minutes', true, [1, 5]],
])('%s, and at the end by the fence', async (_name, givesNotices, minutes) => {
  const { clock, looks, fences, status } = await waiting(() => WAITING, givesNotices);
  await clock.advance(WAITS_MS - 1);
  expect(looks.map((at) => Math.floor(at / MINUTE_MS))).toEqual(minutes);
  for (const [n, at] of looks.entries()) expect(at % MINUTE_MS).toBeLessThan((n + 1) * 200);
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
  expect([await status(), looks.length]).toEqual(['AUTHORIZED', 6]);
  await clock.advance(WAITS_MS);
  expect([looks.length, fences]).toEqual([6, []]);
});

test('gaps §16: an approval that comes after that fence is a contradiction, listed until two persons end it', async () => {
  let said: ActionRequired | Approved = WAITING;
  const { clock, status, compare, unresolved, errors } = await waiting(() => said);
  await clock.advance(WAITS_MS + 200);
  expect([await status(), unresolved.list()]).toEqual(['FAILED', []]);
  said = { outcome: 'APPROVED' };
  await compare();
  await compare();
  expect(await status()).toBe('FAILED');
  expect(unresolved.list()).toMatchObject([{ state: 'CONTRADICTED', operation: 'create' }]);
  expect(errors).toEqual([expect.stringContaining('recorded as never carried out')]);
});
