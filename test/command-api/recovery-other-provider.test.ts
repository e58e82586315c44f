/**
 * ADR-0247: after a change of the provider the new one is not asked about what the earlier one was sent,
 * and nothing of it is fenced there or recorded as failed. Process a is set to the earlier provider,
 * process c to another one with a ledger of its own.
 */
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from '@jest/globals';
import { openSimulator } from '../../providers/simulator/simulator.ts';
import { manualClock } from '../support/manual-clock.ts';
import { expectError, idOf, locatedId, signToken } from '../support/service-in-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import {
  authorizedAt,
  type CommandProcess,
  kindsOf,
  openTwoCommandProcesses,
  PAST_FLIGHT_MS,
  typesOf,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const OTHER = { PROVIDER_URL: 'https://pay.example/v1/' };
const EARLIER = 'simulator';
const EIGHT_DAYS_MS = 8 * 86_400_000;

const folder = temporaryFolder();

/** A process that is set to the other provider, in which no earlier call can run any more. */
const atOther = async (settings: Record<string, string> = {}): Promise<CommandProcess> => {
  const at = await processes.open({ settings: { ...OTHER, ...settings }, provider: elsewhere });
  at.clock.aheadMs = PAST_FLIGHT_MS;
  return at;
};

const processes = await openTwoCommandProcesses({ RECOVERY_DELAYS_MS: '600000' });
const elsewhere = await openSimulator({
  file: join(folder.path, 'ledger.sqlite'),
  timeoutMs: HANGS_MS,
});
const c = await atOther();
const scope = 'ops:admin ops:resolve';
const john = { token: await signToken({ merchant_id: '*', sub: 'john', scope }) };
const jane = { token: await signToken({ merchant_id: '*', sub: 'jane', scope }) };
beforeEach(() => {
  processes.calm();
  c.faults.questions = 0;
  c.lines.length = 0;
});
afterAll(async () => {
  await processes[Symbol.asyncDispose]();
  await elsewhere.close();
  folder.remove();
});

/** A command of process a whose outcome is lost; its payment. */
const leaveUnresolved = async (send: () => ReturnType<CommandProcess['create']>) => {
  processes.a.faults.respondsToLookUps = false;
  processes.a.faults.next('answer lost');
  const response = await send();
  expect(response.status).toBe(503);
  return locatedId(response);
};
const statusOf = async (id: string): Promise<string> => (await processes.state(id)).status;
const track = async (at: CommandProcess, id: string): Promise<void> => {
  at.side.unresolved.track(id);
  await until('an attempt was in vain', () =>
    at.side.unresolved.list().some((one) => one.paymentId === id && one.attempts > 0),
  );
};

describe('recovery at another provider than the one that was sent it', () => {
  test('neither asks nor fences; the earlier provider, set again, gives the outcome', async () => {
    const id = await leaveUnresolved(() => processes.a.create());
    await track(c, id);
    expect(c.faults.questions).toBe(0);
    expect(await typesOf(processes, id)).toEqual(['PaymentCreated']);
    expect(c.side.unresolved.metrics().atOtherProvider).toBe(1);
    expect(c.lines).toContainEqual({
      level: 'error',
      message: expect.stringMatching(/sent to another provider.*payments resolve/),
      fields: expect.objectContaining({
        paymentId: id,
        operation: 'create',
        sentTo: EARLIER,
        provider: 'http:pay.example/v1',
      }),
    });
    const listed = await c.ask('GET', '/ops/v1/unresolved', undefined, john);
    expect(listed.json.unresolved).toContainEqual(
      expect.objectContaining({ paymentId: id, otherProvider: EARLIER }),
    );
    processes.calm();
    const again = await processes.open();
    again.clock.aheadMs = PAST_FLIGHT_MS;
    again.side.unresolved.track(id);
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
    await c.side.unresolved.dropResolved(new Set());
    expect(c.side.unresolved.metrics().atOtherProvider).toBe(0);
  });

  test.each(['capture', 'void', 'refund'])('a %s stays as it is too', async (kind) => {
    const id = idOf(await processes.a.create({ captureNow: kind === 'refund' }));
    await leaveUnresolved(() => processes.a.change(kind, id));
    const before = await typesOf(processes, id);
    await track(c, id);
    expectError(await c.change(kind, id), 503, 'PROVIDER_UNAVAILABLE', [
      expect.stringContaining(id),
      expect.stringContaining('not known yet'),
    ]);
    expect(c.faults.questions).toBe(0);
    expect(await typesOf(processes, id)).toEqual(before);
  });

  test('a repeat of the create under its key is charged at no other provider', async () => {
    const key = { key: 'changed-provider' };
    const id = await leaveUnresolved(() => processes.a.create({}, key));
    const repeated = await c.create({}, key);
    expect([repeated.status, locatedId(repeated)]).toEqual([503, id]);
    expect(c.faults.calls).toEqual([]);
    expect(await statusOf(id)).toBe('PENDING');
  });

  test('gaps §15: old authorizations are not asked about, and one line a round says how many', async () => {
    const ids = [idOf(await processes.a.create()), idOf(await processes.a.create())];
    const listed = async () =>
      (await processes.readModels.search({ status: 'AUTHORIZED' }, 200)).documents.map(
        ({ paymentId }) => paymentId,
      );
    await until('both are listed', async () => {
      const there = await listed();
      return ids.every((id) => there.includes(id));
    });
    const payments = (await listed()).length;
    const clock = manualClock();
    c.clock.aheadMs = EIGHT_DAYS_MS;
    c.side.watchAuthorizations(clock.startTimer);
    await clock.advance(75_000);
    await until('the round is over', () => clock.timers() === 1);
    c.clock.aheadMs = PAST_FLIGHT_MS;
    expect(c.faults.questions).toBe(0);
    expect(c.lines).toEqual([
      {
        level: 'warn',
        message: expect.stringMatching(/made at another provider.*not asked about/),
        fields: { payments },
      },
    ]);
  });

  test('a name of PROVIDER_SAME_AS is the same provider: it is asked', async () => {
    const id = await leaveUnresolved(() => processes.a.create());
    const moved = await processes.open({ settings: { ...OTHER, PROVIDER_SAME_AS: EARLIER } });
    moved.clock.aheadMs = PAST_FLIGHT_MS;
    moved.side.unresolved.track(id);
    await until('it is recovered', async () => (await statusOf(id)) === 'AUTHORIZED');
  });

  test('two persons resolve it by hand, and the alarm ends', async () => {
    const id = await leaveUnresolved(() => processes.a.create());
    await track(c, id);
    const word = { outcome: 'approved', evidence: 'portal of the earlier provider' };
    const path = `/ops/v1/payments/${id}/resolve`;
    expect((await c.ask('POST', path, word, jane)).status).toBe(202);
    expect((await c.ask('POST', path, word, john)).status).toBe(200);
    expect(await statusOf(id)).toBe('AUTHORIZED');
    expect(c.faults.questions).toBe(0);
    const own = c.side.unresolved.list().filter(({ paymentId }) => paymentId === id);
    expect(own).toMatchObject([{ state: 'UNCONFIRMED', otherProvider: EARLIER }]);
    const others = c.side.unresolved.list().filter(({ state }) => state !== 'UNCONFIRMED');
    expect(c.side.unresolved.metrics().atOtherProvider).toBe(others.length);
  });
});

describe('a payment that was made at another provider', () => {
  test.each([
    ['capture', false],
    ['void', false],
    ['refund', true],
  ])('%s: 503 without an intent, and nothing is sent', async (kind, captureNow) => {
    const id = idOf(await processes.a.create({ captureNow }));
    const before = await typesOf(processes, id);
    const response = await c.change(kind, id, undefined, { key: `${kind}-elsewhere` });
    expectError(response, 503, 'PROVIDER_UNAVAILABLE', [
      'the payment was made at another provider than the one in use now; nothing was stored or sent',
    ]);
    expect(response.headers['retry-after']).toBe('60');
    expect(c.faults.calls).toEqual([]);
    expect(await typesOf(processes, id)).toEqual(before);
    // Nothing is kept of it: the same request is carried out where the payment is.
    const carried = await processes.b.change(kind, id, undefined, { key: `${kind}-elsewhere` });
    expect(carried.status).toBe(200);
    expect((await kindsOf(processes, id)).at(-1)).toBe(kind.toUpperCase());
  });

  test('what has become of it is not asked for', async () => {
    const id = await authorizedAt(processes.a);
    c.faults.later.set(id, [{ kind: 'AUTHORIZATION_EXPIRED' }]);
    c.faults.notice(id);
    await until('the notice was looked at', () =>
      c.lines.some(({ message }) => message.includes('what became of the payment')),
    );
    expect(c.faults.questions).toBe(0);
    expect(await statusOf(id)).toBe('AUTHORIZED');
  });

  test('a new payment goes to the provider that is set, and is changed there', async () => {
    const id = await authorizedAt(c);
    expect((await c.change('capture', id)).status).toBe(200);
    const sentTo = (await processes.events(id)).map(({ event: { data } }) =>
      'provider' in data ? data.provider : undefined,
    );
    expect(sentTo).toEqual(['http:pay.example/v1', undefined, 'http:pay.example/v1', undefined]);
    expect((await elsewhere.ledger(null, 1000)).entries.map(({ paymentId }) => paymentId)).toEqual([
      id,
      id,
    ]);
  });

  test('a key whose attempt was never sent is free at the provider that is set', async () => {
    const key = { key: 'never-sent' };
    processes.a.faults.next('not sent');
    expect((await processes.a.create({}, key)).status).toBe(503);
    expect((await c.create({}, key)).status).toBe(200);
  });
});
