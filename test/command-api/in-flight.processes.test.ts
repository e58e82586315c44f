/** gaps §7 over several processes: a call in flight elsewhere is waited for, and looked up only once it must have ended. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { expectError, idOf, locatedId, NO_RETRIES } from '../support/service-in-process.ts';
import { HASTY } from '../support/time-bounds.ts';
import {
  authorizedAt,
  IN_FLIGHT_MS,
  kindsOf,
  openTwoCommandProcesses,
  processesOfTests,
  typesOf,
  warmUp,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const processes = await processesOfTests(NO_RETRIES);

const loaded = async (id: string) => ({
  events: await processes.events(id),
  state: await processes.state(id),
});

describe('gaps §7: a call in flight in another process is not unresolved', () => {
  test('a command waits for the call in flight, looks nothing up, and is decided by its outcome', async () => {
    const { a, b } = processes;
    const id = await authorizedAt(a);
    const held = await a.faults.hold(() => a.change('capture', id));
    b.store.streamReads = 0;
    const voiding = b.change('void', id);
    const equal = b.change('capture', id);
    await until('b has read the stream again and again', () => b.store.streamReads > 3);
    expect(b.faults.questions).toBe(0);
    held.release();
    expect((await held.response).status).toBe(200);
    expectError(await voiding, 422, 'VOID_NOT_ALLOWED', [
      'only an AUTHORIZED payment can be voided; this one is CAPTURED',
    ]);
    // Without a key, an equal command joins what is unresolved, not what is in flight.
    expect((await equal).status).toBe(422);
    expect(b.faults.questions).toBe(0);
    expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE', 'CAPTURE']);
  });

  test('a refund that an operation of another process excludes is decided again once that operation has ended', async () => {
    const { a, b } = processes;
    const id = idOf(await a.create({ captureNow: true, number: '4000000000004251' }));
    const held = await a.faults.hold(() => a.change('refund', id));
    const second = b.change('refund', id, { refundAmount: 1 });
    held.release();
    // This card declines the first refund, so its amount can be refunded again.
    expect([(await held.response).status, (await second).status]).toEqual([422, 422]);
    expect((await second).json.details).toEqual([
      'the provider declined the refund',
      expect.stringContaining('TRANSACTION_NOT_PERMITTED'),
      expect.anything(),
    ]);
  });

  test('V1: past the request budget: 503 SERVICE_UNAVAILABLE with Retry-After, under a key 409', async () => {
    await using processes = await openTwoCommandProcesses(NO_RETRIES);
    const { a } = processes;
    const b = await processes.open({ settings: HASTY });
    await warmUp(b);
    const id = await authorizedAt(a);
    const held = await a.faults.hold(() => a.change('capture', id, undefined, { key: 'k' }));
    const [other, repeat] = await Promise.all([
      b.change('void', id),
      b.change('capture', id, undefined, { key: 'k' }),
    ]);
    expect([other.status, other.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(other.headers).toMatchObject({ 'retry-after': '1' });
    expectError(repeat, 409, 'IDEMPOTENCY_IN_PROGRESS', [
      'the first request with this key still runs',
    ]);
    held.release();
    expect((await held.response).status).toBe(200);
    expect(await typesOf(processes, id)).not.toContain('PaymentVoidRequested');
  });

  test('no process fences an operation before its intent is older than PROVIDER_TIMEOUT_MS + 5 s', async () => {
    await using processes = await openTwoCommandProcesses(NO_RETRIES);
    const { a } = processes;
    const timeout = { PROVIDER_TIMEOUT_MS: '2000' };
    const b = await processes.open({ settings: { ...timeout, REQUEST_BUDGET_MS: '2000' } });
    const later = await processes.open({ settings: timeout });
    const id = await authorizedAt(a);
    const held = await a.faults.hold(() => a.change('capture', id));
    const intentAtMs = Date.parse((await processes.events(id)).at(-1)?.time ?? '');
    b.clock.standsAtMs = intentAtMs + 6_900;
    b.side.unresolved.track(id);
    expect((await b.change('void', id)).status).toBe(503);
    expect(b.faults.questions).toBe(0);
    later.clock.standsAtMs = intentAtMs + 7_001;
    const voided = await later.change('void', id);
    expect([voided.status, voided.json.status]).toEqual([200, 'VOIDED']);
    held.release();
    a.side.beginStop();
    await a.side.stop();
    expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE', 'VOID']);
    expect(await typesOf(processes, id)).toEqual([
      'PaymentCreated',
      'PaymentAuthorized',
      'PaymentCaptureRequested',
      'PaymentCaptureDeclined',
      'PaymentVoidRequested',
      'PaymentVoided',
    ]);
  });

  test('the process that made the call knows when it ended, and looks the operation up at once', async () => {
    const { a, b } = processes;
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    const lost = await a.create();
    expect(lost.status).toBe(503);
    const id = locatedId(lost);
    await until('a has looked it up', () => a.faults.questions > 0);
    const payment = await loaded(id);
    b.clock.standsAtMs = Date.parse(payment.events[0]?.time ?? '');
    expect(b.side.inFlight.leftMs(payment)).toBe(IN_FLIGHT_MS);
    expect(a.side.inFlight.leftMs(payment)).toBe(0);
    a.faults.respondsToLookUps = true;
    expect((await a.change('capture', id)).json.status).toBe('CAPTURED');
    expect(b.faults.questions).toBe(0);
  });

  test('a provider call whose intent was held up for 3 s before its append begins', async () => {
    const { a } = processes;
    const id = await authorizedAt(a);
    a.store.beforeAppend = async () => {
      a.store.beforeAppend = undefined;
      a.clock.aheadMs += 3_000;
    };
    expect((await a.change('capture', id)).json.status).toBe('CAPTURED');
    expect(a.faults.calls).toHaveLength(2);
  });

  test('a provider call that would begin after other processes stop waiting for it never begins', async () => {
    const { a } = processes;
    const id = await authorizedAt(a);
    a.store.beforeAppend = async () => {
      a.clock.aheadMs += 4_100;
    };
    const late = await a.change('capture', id);
    expectError(late, 503, 'SERVICE_UNAVAILABLE', [
      `paymentId ${id}`,
      'the event store was slow, and the provider was not asked: nothing was carried out',
    ]);
    expect(late.headers).toMatchObject({ 'payment-outcome': 'NOT_CHARGED', 'retry-after': '1' });
    expect(a.faults.calls).toHaveLength(1);
    expect((await typesOf(processes, id)).at(-1)).toBe('PaymentCaptureDeclined');
    const said = () => a.lines.filter(({ message }) => message.includes('was not begun'));
    expect(said()).toHaveLength(1);
    // At most once a minute.
    expect((await a.create()).status).toBe(503);
    expect(said()).toHaveLength(1);
  });
});

describe('ADR-0068: a call of a process whose clock is an hour behind stays in flight', () => {
  const HOUR_MS = 3_600_000;
  beforeAll(() => warmUp(processes.a, processes.b));

  test('a call of a process an hour behind is waited for, not looked up and not fenced', async () => {
    const { a, b } = processes;
    const tail = b.side.followTail();
    await tail?.caughtUp;
    a.clock.aheadMs = -HOUR_MS;
    const id = await authorizedAt(a);
    const held = await a.faults.hold(() => a.change('capture', id));
    const payment = await loaded(id);
    await until('b has seen the intent', () => b.side.inFlight.leftMs(payment) > 0);
    b.store.streamReads = 0;
    const voiding = b.change('void', id);
    await until('b has read the stream again and again', () => b.store.streamReads > 3);
    held.release();
    expect([(await voiding).status, b.faults.questions]).toEqual([422, 0]);
    expect((await held.response).json.status).toBe('CAPTURED');
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
    const held = await a.faults.hold(() => a.change('capture', id));
    a.clock.aheadMs = HOUR_MS;
    const payment = await loaded(id);
    expect(a.side.inFlight.leftMs(payment)).toBeGreaterThan(0);
    held.release();
    expect((await held.response).json.status).toBe('CAPTURED');
  });

  test('an intent from before the start counts by its time, so that no command waits for a call that is long over', async () => {
    const { a } = processes;
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    const id = locatedId(await a.create());
    const payment = await loaded(id);
    const later = await processes.open();
    await later.side.followTail()?.caughtUp;
    later.clock.standsAtMs = Date.parse(payment.events[0]?.time ?? '') + HOUR_MS;
    expect(later.side.inFlight.leftMs(payment)).toBe(0);
  });

  test.each([HOUR_MS, -HOUR_MS])(
    'a process whose clock is %i ms off resolves what a dead process left unresolved',
    async (aheadMs) => {
      const dead = await processes.open();
      dead.faults.respondsToLookUps = false;
      dead.faults.next('answer lost');
      const id = locatedId(await dead.create());
      dead.side.unresolved.stopAsking();
      const successor = await processes.open();
      successor.clock.aheadMs = aheadMs;
      successor.side.unresolved.track(id);
      await until(
        'it is resolved',
        async () => (await processes.state(id)).status === 'AUTHORIZED',
      );
    },
  );
});
