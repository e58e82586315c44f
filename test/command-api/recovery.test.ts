/** gaps §7: how unresolved payments are found without reading the log, resolved once, and shown. */
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { type Sweep, startSweep } from '../../command-api/recovery/sweep.ts';
import { StoreUnavailable, StreamNotWhole } from '../../shared/event-store/errors.ts';
import type { EventStore } from '../../shared/event-store/port.ts';
import { streamOf } from '../../shared/payment/events.ts';
import { timesOf } from '../support/long-run-share.ts';
import { expectError, idOf, locatedId, openInProcess } from '../support/service-in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  PAST_FLIGHT_MS,
  type TwoCommandProcesses,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

/** Sends a create whose outcome this process never learns; gives the payment. */
const leaveUnresolvedAt = async (
  at: CommandProcess,
  fault: 'answer lost' | 'call lost' = 'answer lost',
) => {
  at.faults.respondsToLookUps = false;
  at.faults.next(fault);
  const before = at.faults.calls.length;
  let response = await at.create();
  // A busy machine may be too late to begin the call: nothing was sent, and the fault waits for the next.
  while (at.faults.calls.length === before) response = await at.create();
  return locatedId(response);
};

const sweeps: Sweep[] = [];

const processes = await openTwoCommandProcesses({ RECOVERY_DELAYS_MS: '600000' });
afterEach(() => {
  for (const sweep of sweeps.splice(0)) sweep.stop();
  processes.calm();
});
afterAll(() => processes[Symbol.asyncDispose]());

/** A process that starts after every earlier call must have ended. */
const newProcess = async (): Promise<CommandProcess> => {
  const at = await processes.open();
  at.clock.aheadMs = PAST_FLIGHT_MS;
  return at;
};
const statusOf = async (id: string): Promise<string> => (await processes.state(id)).status;

/** Sweeps with the recovery of that process, over read models of which a test may replace parts. */
const sweepIn = (
  at: CommandProcess,
  shown: Partial<TwoCommandProcesses['readModels']> = {},
  store = processes.store,
): Sweep => {
  const sweep = startSweep({
    store,
    readModels: { ...processes.readModels, ...shown },
    unresolved: at.side.unresolved,
    logger: { warn: () => undefined },
  });
  sweeps.push(sweep);
  return sweep;
};

const caughtUp = () =>
  until('the projector has caught up', async () => {
    const { eventsAfter } = await processes.store.head(await processes.readModels.checkpoint());
    return eventsAfter === 0;
  });

/** The store, and how many events are read from its log. */
const counted = () => {
  const reads = { events: 0 };
  const store: EventStore = {
    ...processes.store,
    readAll: async (after, limit) => {
      const page = await processes.store.readAll(after, limit);
      reads.events += page.length;
      return page;
    },
  };
  return { reads, store };
};

describe('gaps §7: unresolved payments are found without scanning the log', () => {
  test('after a restart at once by the read models; the log is not read', async () => {
    const id = await leaveUnresolvedAt(processes.a);
    await caughtUp();
    const { reads, store } = counted();
    const started = await newProcess();
    await sweepIn(started, {}, store).now();
    // At once: a later sweep may well meet the outcome that this one has led to.
    expect(reads.events).toBe(0);
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
    expect(started.lines).toContainEqual({
      level: 'info',
      message: 'outcome recovered',
      fields: { paymentId: id, operation: 'create', outcome: 'APPROVED' },
    });
  });

  test('by the events past the checkpoint, where the projector is stopped or behind', async () => {
    const before = (await processes.readModels.checkpoint()) ?? null;
    const done = idOf(await processes.b.create());
    const id = await leaveUnresolvedAt(processes.a, 'call lost');
    const started = await newProcess();
    const { reads, store } = counted();
    const behind = { checkpoint: async () => before, unresolved: async () => [] };
    await sweepIn(started, behind, store).now();
    await until('it is recovered', async () => (await statusOf(id)) === 'FAILED');
    expect(reads.events).toBeLessThanOrEqual(4);
    expect(await statusOf(done)).toBe('AUTHORIZED');
    expect(started.faults.questions).toBe(2);
  });

  test('by the list of parked payments, whose documents do not show the intent', async () => {
    const id = await leaveUnresolvedAt(processes.a);
    await caughtUp();
    const since = new Date().toISOString();
    const parked = async () => [{ paymentId: id, revision: 0, reason: 'poison', since }];
    await sweepIn(await newProcess(), { unresolved: async () => [], parked }).now();
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
  });

  test('a parked payment whose stream was removed is let go where nothing of it is known to be open', async () => {
    const id = idOf(await processes.a.create());
    await caughtUp();
    const since = new Date().toISOString();
    const parked = async () => [{ paymentId: id, revision: 2, reason: 'deleted', since }];
    const started = await newProcess();
    let reads = 0;
    started.store.beforeRead = async (stream) => {
      if (stream !== streamOf(id)) return;
      reads += 1;
      throw new StreamNotWhole(stream, 'deleted');
    };
    const own = sweepIn(started, { unresolved: async () => [], parked });
    await own.now();
    await until('it is read once', () => reads === 1);
    // A schedule that goes on would not be begun again, and would have a line.
    await until('it is read by the next sweep', async () => {
      await own.now();
      return reads > 1;
    });
    expect(started.lines).toEqual([]);
    const unresolved = async () => [{ paymentId: id, merchantId: 'm_test', since }];
    await sweepIn(started, { unresolved, parked }).now();
    await until('a failed attempt is in the log', () => started.lines.length === 1);
    expect(started.lines[0]?.message).toMatch(/^recovery could not ask the provider/);
  });

  test('a sweep that fails is tried again, and why it fails is one line while it lasts', async () => {
    const id = await leaveUnresolvedAt(processes.a);
    const warnings: string[] = [];
    let away = true;
    const end: EventStore['end'] = () =>
      away ? Promise.reject(new StoreUnavailable('away')) : processes.store.end();
    const sweep = startSweep({
      store: { ...processes.store, end },
      readModels: processes.readModels,
      unresolved: (await newProcess()).side.unresolved,
      logger: { warn: (_fields, message) => void warnings.push(message) },
    });
    sweeps.push(sweep);
    for (const isAway of [true, true, false, true, true]) {
      away = isAway;
      await sweep.now();
    }
    expect(warnings).toHaveLength(2);
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
  });

  test('the log is read once: the next sweep continues where the last one ended', async () => {
    const started = await newProcess();
    const { reads, store } = counted();
    const sweep = sweepIn(started, { checkpoint: async () => null }, store);
    await sweep.now();
    const first = reads.events;
    expect(first).toBeGreaterThan(4);
    const id = await leaveUnresolvedAt(processes.a);
    await sweep.now();
    // The two new ones, and one that shows which of two places is the later one.
    expect(reads.events - first).toBeLessThanOrEqual(3);
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
  });

  test('what may be in flight in another process is not looked up before its time', async () => {
    // The call stays in flight by b's clock, however long this machine takes.
    processes.b.clock.standsAtMs = Date.now();
    const held = await processes.a.faults.hold(() => processes.a.create());
    await caughtUp();
    await sweepIn(processes.b).now();
    await until('it has looked', () => processes.b.side.unresolved.metrics().count === 0);
    held.release();
    expect((await held.response).status).toBe(200);
    expect(processes.b.faults.questions).toBe(0);
  });
});

describe('gaps §7: recovery in several processes at once never acts twice', () => {
  test.each(['answer lost', 'call lost'] as const)('%s: one outcome is recorded', async (fault) => {
    const ids: string[] = [];
    for (let n = 0; n < timesOf(8, 2); n++) ids.push(await leaveUnresolvedAt(processes.a, fault));
    await caughtUp();
    const others = await Promise.all([newProcess(), newProcess(), newProcess()]);
    await Promise.all(others.map((at) => sweepIn(at).now()));
    const expected = fault === 'answer lost' ? 'AUTHORIZED' : 'FAILED';
    for (const id of ids) {
      await until('it is recovered', async () => (await statusOf(id)) === expected);
      expect(await processes.events(id)).toHaveLength(2);
      expect(await processes.ledger(id)).toHaveLength(fault === 'answer lost' ? 1 : 0);
    }
    // The process that made the call finds the payment resolved too.
    for (const id of ids) expect((await processes.a.change('refund', id)).status).toBe(422);
  });
});

describe('gaps §7: what stays unresolved is visible', () => {
  test('in the metrics and a log line with age, operation and next attempt, until it is resolved', async () => {
    const a = await processes.open();
    const id = await leaveUnresolvedAt(a);
    const mine = () => a.side.unresolved.list().filter(({ paymentId }) => paymentId === id);
    await until('the first look-up has failed', () => mine()[0]?.attempts === 1);
    expect(a.lines).toContainEqual({
      level: 'warn',
      message: 'the outcome is still unknown',
      fields: {
        paymentId: id,
        operation: 'create',
        ageSeconds: expect.any(Number),
        attempts: 1,
        nextAttemptSeconds: expect.any(Number),
      },
    });
    a.clock.aheadMs = 90_000;
    expect(a.side.unresolved.metrics()).toMatchObject({ count: 1 });
    expect(a.side.unresolved.metrics().oldestSeconds).toBeGreaterThanOrEqual(90);
    a.clock.aheadMs = 0;
    // Another process resolves the payment; the next sweep of this process notices.
    await sweepIn(await newProcess()).now();
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
    await caughtUp();
    await sweepIn(a).now();
    expect(a.side.unresolved.metrics()).toMatchObject({ count: 0, oldestSeconds: 0 });
    expect(a.side.unresolved.list()).toEqual([]);
  });
});

test('a declined card is a log line of its own, and leaves the circuit breaker closed', async () => {
  const { a } = processes;
  for (let declines = 0; declines < 6; declines += 1)
    expect((await a.create({ number: '4000000000009995' })).status).toBe(402);
  expect(a.side.provider.breakerOpen()).toBe(false);
  expect(a.lines.filter(({ message }) => message.includes('declined'))).toHaveLength(6);
  expect(a.lines).toContainEqual({
    level: 'info',
    message: 'the provider declined the operation',
    fields: expect.objectContaining({ operation: 'create', failureCode: 'INSUFFICIENT_FUNDS' }),
  });
});

describe('faults, SQLite: a full disk stops commands, which succeed again once there is space', () => {
  const fill = (at: CommandProcess, after = 0): void => {
    let left = after;
    at.store.beforeAppend = async () => {
      left -= 1;
      if (left < 0) throw new StoreUnavailable('database or disk is full');
    };
  };

  test('no intent is stored, so no call follows: 503 SERVICE_UNAVAILABLE with Retry-After, later 200', async () => {
    const { a } = processes;
    const called = a.faults.calls.length;
    fill(a);
    const refused = await a.create();
    expectError(refused, 503, 'SERVICE_UNAVAILABLE');
    expect(refused.headers).toMatchObject({ 'retry-after': '1' });
    expect(a.faults.calls).toHaveLength(called);
    a.store.beforeAppend = undefined;
    expect((await a.create()).status).toBe(200);
  });

  test('a disk full between intent and outcome: 503, and the outcome is recorded once there is space', async () => {
    const a = await processes.open();
    fill(a, 1);
    const response = await a.create();
    const id = locatedId(response);
    expect([response.status, response.json.error]).toEqual([503, 'PROVIDER_UNAVAILABLE']);
    expect(await statusOf(id)).toBe('PENDING');
    a.store.beforeAppend = undefined;
    expect((await a.change('capture', id)).json.status).toBe('CAPTURED');
    expect((await processes.ledger(id)).map(({ kind }) => kind)).toEqual(['AUTHORIZE', 'CAPTURE']);
  });
});

test('settings, SIGTERM: a stop waits for the look-up under way, and begins no other', async () => {
  const service = await openInProcess({ RECOVERY_DELAYS_MS: '600000' });
  const { faults } = service;
  const id = idOf(await service.create({ captureNow: true }));
  faults.respondsToLookUps = false;
  for (const refundAmount of [1, 2, 3]) {
    faults.next('answer lost');
    expect((await service.change('refund', id, { refundAmount })).status).toBe(503);
  }
  const mayRespond = Promise.withResolvers<void>();
  faults.beforeResponse = mayRespond.promise;
  // The next process looks the three up, one after the other.
  const before = faults.questions;
  await service.restart();
  await until('a look-up is under way', () => faults.questions > before);
  const stopping = service[Symbol.asyncDispose]();
  mayRespond.resolve();
  await stopping;
  expect(faults.questions).toBe(before + 1);
});
