/** A process whose clock is an hour behind keeps its calls in flight (gaps §7, ADR-0068). */
import { afterAll, afterEach, expect, test } from '@jest/globals';
import { locatedId, NO_RETRIES } from '../support/in-process.ts';
import {
  authorizedAt,
  kindsOf,
  openTwoCommandProcesses,
  warmUp,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const HOUR_MS = 3_600_000;

const processes = await openTwoCommandProcesses(NO_RETRIES);
await warmUp(processes.a, processes.b);
afterEach(() => processes.calm());
afterAll(() => processes[Symbol.asyncDispose]());

test('a call of a process an hour behind is waited for, not looked up and not fenced', async () => {
  const { a, b } = processes;
  const tail = b.side.followTail();
  await tail?.caughtUp;
  a.clock.aheadMs = -HOUR_MS;
  const id = await authorizedAt(a);
  const held = a.faults.holdNext();
  const capturing = a.change('capture', id);
  await held.begun;
  b.store.streamReads = 0;
  const voiding = b.change('void', id);
  await until('b has read the stream again and again', () => b.store.streamReads > 3);
  held.release();
  expect([(await voiding).status, b.faults.questions]).toEqual([422, 0]);
  expect((await capturing).json.status).toBe('CAPTURED');
  expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE', 'CAPTURE']);
  expect(tail?.clockSkewSeconds()).toBeGreaterThan(3_590);
  expect(b.lines).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      message: expect.stringContaining('clock of another'),
    }),
  );
});

test('an own intent counts by a clock that only goes forward, without the log', async () => {
  const { a } = processes;
  const id = await authorizedAt(a);
  const held = a.faults.holdNext();
  const capturing = a.change('capture', id);
  await held.begun;
  a.clock.aheadMs = HOUR_MS;
  const payment = {
    events: await processes.events(id),
    state: await processes.state(id),
    readModel: undefined,
  };
  expect(a.side.inFlight.leftMs(payment)).toBeGreaterThan(0);
  held.release();
  expect((await capturing).json.status).toBe('CAPTURED');
});

test('an intent from before the start counts by its time, so that no command waits for a call that is long over', async () => {
  const { a } = processes;
  a.faults.respondsToLookUps = false;
  a.faults.next('answer lost');
  const id = locatedId(await a.create());
  const events = await processes.events(id);
  const later = await processes.open();
  await later.side.followTail()?.caughtUp;
  later.clock.standsAtMs = Date.parse(events[0]?.time ?? '') + HOUR_MS;
  const payment = { events, state: await processes.state(id), readModel: undefined };
  expect(later.side.inFlight.leftMs(payment)).toBe(0);
});
