/** gaps §6, §7: what a process remembers of a payment may be older than the event log; and appends whose response is lost, that conflict, or that outlast the request budget. */
import { beforeAll, describe, expect, test } from '@jest/globals';
import { expectError, idOf, locatedId, NO_RETRIES } from '../support/service-in-process.ts';
import { HASTY } from '../support/time-bounds.ts';
import {
  authorizedAt,
  type CommandProcess,
  kindsOf,
  openTwoCommandProcesses,
  PAST_FLIGHT_MS,
  processesOfTests,
  typesOf,
  warmUp,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

/** More payments than a process keeps in memory, which are 128 (command-api/compose.ts). */
const SEEN = 200;

const processes = await processesOfTests(NO_RETRIES);

describe('gaps §6: what a process last saw of a payment may be old', () => {
  test('a payment that another process has just created is found', async () => {
    const { a, b } = processes;
    expect((await b.change('capture', await authorizedAt(a))).status).toBe(200);
    expectError(await b.change('capture', 'pay_unknown'), 404, 'PAYMENT_NOT_FOUND');
  });

  test('a command is refused only by the stream as it is now', async () => {
    const { a, b } = processes;
    const id = await authorizedAt(b);
    expect((await a.change('capture', id)).status).toBe(200);
    expect((await b.change('refund', id, { refundAmount: 500 })).json.refundedAmount).toBe(500);
    expect((await a.change('refund', id, { refundAmount: 2000 })).json.status).toBe('REFUNDED');
    expectError(await b.change('refund', id), 422, 'REFUND_NOT_ALLOWED', [
      'the payment is already fully refunded',
    ]);
  });

  test('the times of a payment’s events never run backwards, whatever the clocks of the processes say', async () => {
    const { a, b } = processes;
    a.clock.aheadMs = 60_000;
    const id = await authorizedAt(a);
    expect((await b.change('capture', id)).status).toBe(200);
    const times = (await processes.events(id)).map(({ time }) => time);
    expect(times).toHaveLength(4);
    expect(times).toEqual(times.toSorted());
  });

  test('a create that another process has resolved is not joined after a command on its payment', async () => {
    const { a, b } = processes;
    const fields = { merchantReference: 'resolved-elsewhere' };
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    const id = locatedId(await a.create(fields));
    await until('a has looked it up', () => a.faults.questions > 0);
    b.clock.aheadMs = PAST_FLIGHT_MS;
    expect((await b.change('capture', id)).status).toBe(200);
    expect((await a.change('refund', id, { refundAmount: 500 })).status).toBe(200);
    expect(a.side.unresolved.list()).toEqual([]);
    expect(idOf(await a.create(fields))).not.toBe(id);
  });

  test('an unresolved create is joined, however many payments the process has seen since', async () => {
    const { a } = processes;
    const { provider } = a.side;
    const { lookUp } = provider;
    const mayRespond = Promise.withResolvers<void>();
    // A provider that is slow to answer look-ups, as a provider in trouble is.
    provider.lookUp = async (question) => {
      await mayRespond.promise;
      return lookUp(question);
    };
    const fields = { merchantReference: 'long-ago' };
    const held = await a.faults.hold(() => a.create(fields), 'answer lost');
    await Promise.all(Array.from({ length: SEEN }, () => a.create()));
    held.release();
    const id = locatedId(await held.response);
    const repeat = a.create(fields);
    mayRespond.resolve();
    expect(idOf(await repeat)).toBe(id);
    provider.lookUp = lookUp;
    expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE']);
  });

  test('a create that another process has fenced is not joined: its repeat is a new payment', async () => {
    const { a, b } = processes;
    const fields = { merchantReference: 'fenced-elsewhere' };
    a.faults.respondsToLookUps = false;
    a.faults.next('call lost');
    const id = locatedId(await a.create(fields));
    await until('a look-up got no answer', () => a.faults.questions > 0);
    a.faults.respondsToLookUps = true;
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.side.unresolved.track(id);
    await until('b has resolved it', async () => (await processes.state(id)).status === 'FAILED');
    const responses = [await a.create(fields), await a.create(fields)];
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set([id, ...responses.map(idOf)]).size).toBe(3);
  });

  test('where another process has fenced the first of two equal creates, the second is joined', async () => {
    const { a, b } = processes;
    const fields = { merchantReference: 'two-at-once' };
    a.faults.respondsToLookUps = false;
    const held = await a.faults.hold(() => a.create(fields), 'answer lost');
    a.faults.next('call lost');
    const fenced = locatedId(await a.create(fields));
    held.release();
    const approved = locatedId(await held.response);
    await until('both were looked up', () => a.faults.questions === 2);
    a.faults.respondsToLookUps = true;
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.side.unresolved.track(fenced);
    await until(
      'b has resolved it',
      async () => (await processes.state(fenced)).status === 'FAILED',
    );
    const repeat = await a.create(fields);
    expect([repeat.status, idOf(repeat)]).toEqual([200, approved]);
  });

  test('a refund that another process has resolved is not joined: its equal is a second refund', async () => {
    const { a, b } = processes;
    const id = idOf(await a.create({ captureNow: true }));
    const refund = (at: CommandProcess) => at.change('refund', id, { refundAmount: 500 });
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    expect((await refund(a)).status).toBe(503);
    b.clock.aheadMs = PAST_FLIGHT_MS;
    // For b the refund is unresolved by its age, so b joins it; a's equal one is then a second refund.
    expect((await refund(b)).json.refundedAmount).toBe(500);
    a.clock.aheadMs = PAST_FLIGHT_MS;
    expect((await refund(a)).json.refundedAmount).toBe(1000);
    expect(await kindsOf(processes, id)).toEqual(['SALE', 'REFUND', 'REFUND']);
  });
});

const SHORT = { REQUEST_BUDGET_MS: '800', PROVIDER_TIMEOUT_MS: '800' };

/** Its budget is below the second in which a call has to begin: once spent, it alone keeps the call back. */
let hurried: CommandProcess;

beforeAll(async () => {
  hurried = await processes.open({ settings: SHORT });
  await warmUp(hurried);
});

describe('gaps §6, §7: appends that fail or conflict', () => {
  test('an append whose response is lost is repeated: stored once, charged once', async () => {
    const { a } = processes;
    a.store.loseResponses = 3;
    const response = await a.create({ captureNow: true });
    expect([response.status, a.store.loseResponses]).toEqual([200, 0]);
    const id = idOf(response);
    const types = ['PaymentCreated', 'PaymentAuthorized', 'PaymentCaptured'];
    expect(await typesOf(processes, id)).toEqual(types);
    expect(await kindsOf(processes, id)).toEqual(['SALE']);
  });

  test('an intent whose append has an unknown outcome: 503, and no provider call follows', async () => {
    const id = await authorizedAt(processes.a);
    hurried.store.loseResponses = Number.POSITIVE_INFINITY;
    const response = await hurried.change('capture', id);
    expectError(response, 503, 'SERVICE_UNAVAILABLE', [
      'it is not known whether anything was stored; nothing was sent to the provider',
    ]);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    hurried.store.loseResponses = 0;
    await until('the operation is resolved', async () =>
      (await typesOf(processes, id)).includes('PaymentCaptureDeclined'),
    );
    expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE']);
  });

  test.each([
    ['without a key was not sent', {}, 'NOT_SENT'],
    ['under a key ends by the fence alone: a lost log may have sent it', { key: 'k' }, 'FENCED'],
  ])(
    'beside a ledger that cannot be read, a call past the budget %s',
    async (_title, asking, outcome) => {
      await using processes = await openTwoCommandProcesses(NO_RETRIES);
      const a = await processes.open({ settings: SHORT });
      a.faults.listsLedger = false;
      await warmUp(a);
      const id = await authorizedAt(processes.a);
      // The repeat of the append ends after the response, however fast the machine is.
      const responded = Promise.withResolvers<void>();
      a.store.loseResponses = 1;
      a.store.beforeAppend = async () => {
        if (a.store.loseResponses === 0) await responded.promise;
      };
      expect((await a.change('capture', id, undefined, asking)).status).toBe(503);
      responded.resolve();
      await until('the operation is resolved', async () =>
        (await typesOf(processes, id)).includes('PaymentCaptureDeclined'),
      );
      const last = (await processes.events(id)).at(-1);
      expect(last?.event.data).toMatchObject({ outcome });
      expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE']);
    },
  );

  test('an intent whose append has an unknown outcome is looked up while the store still fails', async () => {
    await using processes = await openTwoCommandProcesses({
      RECOVERY_DELAYS_MS: Array(50).fill('100').join(),
    });
    const id = await authorizedAt(processes.a);
    const a = await processes.open({ settings: HASTY });
    a.store.loseResponses = Number.POSITIVE_INFINITY;
    expect((await a.change('capture', id)).status).toBe(503);
    await until('the operation is looked up', () => a.faults.questions > 0);
    a.store.loseResponses = 0;
    await until('the operation is resolved', async () =>
      (await typesOf(processes, id)).includes('PaymentCaptureDeclined'),
    );
  });

  test('appends that conflict until the request budget is spent: 503 with Retry-After, never 500', async () => {
    const { a } = processes;
    const id = idOf(await a.create({ captureNow: true, amount: 9_000_000 }));
    hurried.store.beforeAppend = async () => {
      await a.change('refund', id, { refundAmount: 1 });
    };
    const response = await hurried.change('refund', id, { refundAmount: 2 });
    expect([response.status, response.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    hurried.store.beforeAppend = undefined;
  });
});
