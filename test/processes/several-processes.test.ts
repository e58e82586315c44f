/** gaps §6 to §8 with several command processes on one event store. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import {
  type CommandResponse,
  expectError,
  idOf,
  locatedId,
  NO_RETRIES,
} from '../support/in-process.ts';
import {
  type CommandProcess,
  openTwoCommandProcesses,
  PAST_FLIGHT_MS,
  type TwoCommandProcesses,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

/** As many payments as a process keeps in memory (command-api/compose.ts). */
const SEEN_MAX = 1000;

let processes: TwoCommandProcesses;
let keys = 0;
const newKey = (): string => `key-${++keys}`;

beforeAll(async () => {
  processes = await openTwoCommandProcesses(NO_RETRIES);
});
afterEach(() => processes.calm());
afterAll(() => processes[Symbol.asyncDispose]());

const kindsOf = async (processes: TwoCommandProcesses, id: string): Promise<string[]> =>
  (await processes.ledger(id)).map(({ kind }) => kind);
const typesOf = async (processes: TwoCommandProcesses, id: string): Promise<string[]> =>
  (await processes.events(id)).map(({ event }) => event.type);
const authorized = async (at: CommandProcess): Promise<string> => idOf(await at.create());
/** The first requests of a process are its slowest: budgets are to be spent elsewhere. */
const warm = async (...both: CommandProcess[]): Promise<void> => {
  for (const at of both) await until('it is warm', async () => (await at.create()).status === 200);
};

describe('gaps §7: in flight is not unresolved, in another process', () => {
  test('a command waits for the call in flight, looks nothing up, and is judged by its outcome', async () => {
    const { a, b } = processes;
    const id = await authorized(a);
    const held = a.faults.holdNext();
    const capturing = a.change('capture', id);
    await held.begun;
    b.store.streamReads = 0;
    const voiding = b.change('void', id);
    const equal = b.change('capture', id);
    await until('b has looked again and again', () => b.store.streamReads > 3);
    expect(b.faults.questions).toBe(0);
    held.release();
    expect((await capturing).status).toBe(200);
    expectError(await voiding, 422, 'VOID_NOT_ALLOWED', [
      'only an AUTHORIZED payment can be voided; this one is CAPTURED',
    ]);
    // Merely running, so it is not joined without a key.
    expect((await equal).status).toBe(422);
    expect(b.faults.questions).toBe(0);
    expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE', 'CAPTURE']);
  });

  test('a refund that an operation of another process excludes is judged anew once that one has ended', async () => {
    const { a, b } = processes;
    const id = idOf(await a.create({ captureNow: true, number: '4000000000004251' }));
    const held = a.faults.holdNext();
    const declined = a.change('refund', id);
    await held.begun;
    const second = b.change('refund', id, { refundAmount: 1 });
    held.release();
    // The first is declined by this card: its reservation is released.
    expect([(await declined).status, (await second).status]).toEqual([422, 422]);
    expect((await second).json.details).toEqual([
      'the provider declined the refund',
      expect.stringContaining('TRANSACTION_NOT_PERMITTED'),
      expect.anything(),
    ]);
  });

  test('past the budget: 503 SERVICE_UNAVAILABLE with Retry-After, under a key 409', async () => {
    await using processes = await openTwoCommandProcesses({
      ...NO_RETRIES,
      PROVIDER_TIMEOUT_MS: '250',
      REQUEST_BUDGET_MS: '250',
    });
    const { a, b } = processes;
    await warm(a, b);
    const id = await authorized(a);
    const held = a.faults.holdNext();
    const capturing = a.change('capture', id, undefined, { key: 'k' });
    await held.begun;
    const [other, repeat] = await Promise.all([
      b.change('void', id),
      b.change('capture', id, undefined, { key: 'k' }),
    ]);
    expect([other.status, other.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(other.headers).toMatchObject({ 'retry-after': '1' });
    expectError(repeat, 409, 'IDEMPOTENCY_IN_PROGRESS', [
      'the first request with this key still runs',
    ]);
    await capturing;
    held.release();
    await until('the outcome is recorded', async () => (await processes.events(id)).length === 4);
    expect(await typesOf(processes, id)).not.toContain('PaymentVoidRequested');
  });

  test('no process fences an operation before its intent is older than PROVIDER_TIMEOUT_MS + 2 s', async () => {
    await using processes = await openTwoCommandProcesses({
      ...NO_RETRIES,
      REQUEST_BUDGET_MS: '500',
      PROVIDER_TIMEOUT_MS: '300',
    });
    const { a, b } = processes;
    await warm(a, b);
    a.faults.calls.length = 0;
    const id = await authorized(a);
    const held = a.faults.holdNext();
    void a.change('capture', id);
    await held.begun;
    b.clock.aheadMs = 1_400;
    b.side.unresolved.track(id);
    expect((await b.change('void', id)).status).toBe(503);
    expect(b.faults.questions).toBe(0);
    b.clock.aheadMs = 2_400;
    const voided = await b.change('void', id);
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

  test('the process of the call knows when it ended, and looks it up at once', async () => {
    const { a, b } = processes;
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    const lost = await a.create();
    expect(lost.status).toBe(503);
    const id = locatedId(lost);
    await until('a has asked', () => a.faults.questions > 0);
    const payment = {
      events: await processes.events(id),
      state: await processes.state(id),
      readModel: undefined,
    };
    expect(b.side.inFlight.leftMs(payment)).toBeGreaterThan(3_000);
    expect(a.side.inFlight.leftMs(payment)).toBe(0);
    a.faults.respondsToLookUps = true;
    expect((await a.change('capture', id)).json.status).toBe('CAPTURED');
    expect(b.faults.questions).toBe(0);
  });

  test('a provider call that would begin after other processes stop waiting for it is not begun', async () => {
    const { a } = processes;
    const id = await authorized(a);
    a.store.beforeAppend = async () => {
      a.clock.aheadMs += 1_100;
    };
    expectError(await a.change('capture', id), 503, 'PROVIDER_UNAVAILABLE', [
      `paymentId ${id}`,
      'the provider did not carry out the capture: nothing was changed',
    ]);
    expect(a.faults.calls).toHaveLength(1);
  });
});

describe('gaps §8 over several processes', () => {
  test('a create that runs elsewhere under the key is waited for and replayed', async () => {
    const { a, b } = processes;
    const key = newKey();
    const held = a.faults.holdNext();
    const first = a.create({}, { key });
    await held.begun;
    const repeat = b.create({}, { key });
    held.release();
    expect((await repeat).text).toBe((await first).text);
    expect((await repeat).headers).toMatchObject({ 'idempotent-replayed': 'true' });
    expect(await kindsOf(processes, idOf(await repeat))).toEqual(['AUTHORIZE']);
  });

  test('a create that met the other process at the append reads it and answers', async () => {
    const { a, b } = processes;
    const key = newKey();
    // b has found no payment under the key; before its append, a's is there.
    b.store.beforeAppend = async () => {
      b.store.beforeAppend = undefined;
      await a.create({}, { key });
    };
    const repeat = await b.create({}, { key });
    expect([repeat.status, repeat.headers['idempotent-replayed']]).toEqual([200, 'true']);
    expect(await kindsOf(processes, idOf(repeat))).toEqual(['AUTHORIZE']);
  });

  test('the key is free where the other process never sent it: the next attempt', async () => {
    const { a, b } = processes;
    const key = newKey();
    a.faults.next('not sent');
    b.store.beforeAppend = async () => {
      b.store.beforeAppend = undefined;
      await a.create({}, { key });
    };
    const second = await b.create({}, { key });
    expect(second.status).toBe(200);
    expect(second.headers).not.toHaveProperty('idempotent-replayed');
    expect((await a.create({}, { key })).text).toBe(second.text);
    expect(await kindsOf(processes, idOf(second))).toEqual(['AUTHORIZE']);
  });

  test.each(['capture', 'void', 'refund'])('a %s is replayed to the byte', async (change) => {
    const { a, b } = processes;
    const key = newKey();
    const id = idOf(await a.create({ captureNow: change === 'refund' }));
    const send = (at: CommandProcess) => at.change(change, id, undefined, { key });
    const first = await send(a);
    const second = await send(b);
    expect(second.text).toBe(first.text);
    expect(second.headers).toMatchObject({ 'idempotent-replayed': 'true' });
    expect(await kindsOf(processes, id)).toHaveLength(2);
  });

  test.each(['capture', 'void', 'refund'])(
    'a %s that met the other process at the append is its repeat, whatever could be done twice',
    async (change) => {
      const { a, b } = processes;
      const key = newKey();
      const id = idOf(await a.create({ captureNow: change === 'refund' }));
      const body = change === 'refund' ? { refundAmount: 500 } : undefined;
      let first: CommandResponse | undefined;
      // b has found nothing under the key; before its append, a has carried it out.
      b.store.beforeAppend = async () => {
        b.store.beforeAppend = undefined;
        first = await a.change(change, id, body, { key });
      };
      const second = await b.change(change, id, body, { key });
      expect([first?.status, second.text]).toEqual([200, first?.text]);
      expect(second.headers).toMatchObject({ 'idempotent-replayed': 'true' });
      expect(await kindsOf(processes, id)).toHaveLength(2);
    },
  );

  test('16 equal refunds with one key, from both at once: one refund, one body', async () => {
    const { a, b } = processes;
    for (let round = 0; round < 5; round += 1) {
      const key = newKey();
      const id = idOf(await a.create({ captureNow: true }));
      const responses = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          (n % 2 ? a : b).change('refund', id, { refundAmount: 100 }, { key }),
        ),
      );
      expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
      expect(await kindsOf(processes, id)).toEqual(['SALE', 'REFUND']);
    }
  });

  test('64 equal creates with one key, from both: one charge, one body', async () => {
    const { a, b } = processes;
    const key = newKey();
    const responses = await Promise.all(
      Array.from({ length: 64 }, (_, n) => (n % 2 ? a : b).create({}, { key })),
    );
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(responses[0]?.status).toBe(200);
    expect(await kindsOf(processes, JSON.parse(responses[0]?.text ?? '').paymentId)).toHaveLength(
      1,
    );
  });
});

describe('gaps §6: what a process last saw of a payment may be old', () => {
  test('a payment that another process has just made is found', async () => {
    const { a, b } = processes;
    expect((await b.change('capture', await authorized(a))).status).toBe(200);
    expectError(await b.change('capture', 'pay_unknown'), 404, 'PAYMENT_NOT_FOUND');
  });

  test('a command is only rejected by the stream as it is now', async () => {
    const { a, b } = processes;
    const id = await authorized(b);
    expect((await a.change('capture', id)).status).toBe(200);
    expect((await b.change('refund', id, { refundAmount: 500 })).json.refundedAmount).toBe(500);
    expect((await a.change('refund', id, { refundAmount: 2000 })).json.status).toBe('REFUNDED');
    expectError(await b.change('refund', id), 422, 'REFUND_NOT_ALLOWED', [
      'the payment is already fully refunded',
    ]);
  });

  test('the times of its events never run backwards, whatever the clocks say', async () => {
    const { a, b } = processes;
    a.clock.aheadMs = 60_000;
    const id = await authorized(a);
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
    await until('a has asked', () => a.faults.questions > 0);
    b.clock.aheadMs = PAST_FLIGHT_MS;
    expect((await b.change('capture', id)).status).toBe(200);
    expect((await a.change('refund', id, { refundAmount: 500 })).status).toBe(200);
    expect(a.side.unresolved.list()).toEqual([]);
    expect(idOf(await a.create(fields))).not.toBe(id);
  });

  test('an unresolved create is joined, however many payments were seen since', async () => {
    const { a } = processes;
    const { provider } = a.side;
    const { lookUp } = provider;
    const asking = Promise.withResolvers<void>();
    // A provider that is slow to answer questions, as one in trouble is.
    provider.lookUp = async (question) => {
      await asking.promise;
      return lookUp(question);
    };
    const fields = { merchantReference: 'long-ago' };
    const held = a.faults.holdNext('answer lost');
    const first = a.create(fields);
    await held.begun;
    for (let n = 0; n < SEEN_MAX; n += 100)
      await Promise.all(Array.from({ length: 100 }, () => a.create()));
    held.release();
    const id = locatedId(await first);
    const repeat = a.create(fields);
    asking.resolve();
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
    await until('asked in vain', () => a.faults.questions > 0);
    a.faults.respondsToLookUps = true;
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.side.unresolved.track(id);
    await until('b has ended it', async () => (await processes.state(id)).status === 'FAILED');
    const responses = [await a.create(fields), await a.create(fields)];
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(new Set([id, ...responses.map(idOf)]).size).toBe(3);
  });

  test('where the first of two equal ones was fenced elsewhere, the second is joined', async () => {
    const { a, b } = processes;
    const fields = { merchantReference: 'two-at-once' };
    a.faults.respondsToLookUps = false;
    const held = a.faults.holdNext('answer lost');
    a.faults.next('call lost');
    const acting = a.create(fields);
    await held.begun;
    const fenced = locatedId(await a.create(fields));
    held.release();
    const approved = locatedId(await acting);
    await until('both were asked about', () => a.faults.questions === 2);
    a.faults.respondsToLookUps = true;
    b.clock.aheadMs = PAST_FLIGHT_MS;
    b.side.unresolved.track(fenced);
    await until('b has ended it', async () => (await processes.state(fenced)).status === 'FAILED');
    const repeat = await a.create(fields);
    expect([repeat.status, idOf(repeat)]).toEqual([200, approved]);
  });

  test('nothing that another process has ended is joined', async () => {
    const { a, b } = processes;
    const id = idOf(await a.create({ captureNow: true }));
    const refund = (at: CommandProcess) => at.change('refund', id, { refundAmount: 500 });
    a.faults.respondsToLookUps = false;
    a.faults.next('answer lost');
    expect((await refund(a)).status).toBe(503);
    b.clock.aheadMs = PAST_FLIGHT_MS;
    // Unresolved by its age: joined. Afterwards a's own, equal one is a refund of its own.
    expect((await refund(b)).json.refundedAmount).toBe(500);
    a.clock.aheadMs = PAST_FLIGHT_MS;
    expect((await refund(a)).json.refundedAmount).toBe(1000);
    expect(await kindsOf(processes, id)).toEqual(['SALE', 'REFUND', 'REFUND']);
  });
});

describe('gaps §6, §7: the same ids at the same revision, and budgets', () => {
  test('an append whose response is lost is repeated: stored once, charged once', async () => {
    const { a } = processes;
    a.store.loseResponses = 3;
    const response = await a.create({ captureNow: true });
    expect([response.status, a.store.loseResponses]).toEqual([200, 0]);
    const id = idOf(response);
    expect(await typesOf(processes, id)).toEqual([
      'PaymentCreated',
      'PaymentAuthorized',
      'PaymentCaptured',
    ]);
    expect(await kindsOf(processes, id)).toEqual(['SALE']);
  });

  test('an intent of which nobody can say whether it is stored: 503, and no call follows', async () => {
    await using processes = await openTwoCommandProcesses({
      ...NO_RETRIES,
      REQUEST_BUDGET_MS: '400',
      PROVIDER_TIMEOUT_MS: '400',
    });
    const { a } = processes;
    await warm(a);
    const id = await authorized(a);
    a.store.loseResponses = Number.POSITIVE_INFINITY;
    const response = await a.change('capture', id);
    expectError(response, 503, 'SERVICE_UNAVAILABLE', [
      'it is not known whether anything was stored; nothing was sent to the provider',
    ]);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    a.store.loseResponses = 0;
    await until('it is ended', async () =>
      (await typesOf(processes, id)).includes('PaymentCaptureDeclined'),
    );
    expect(await kindsOf(processes, id)).toEqual(['AUTHORIZE']);
  });

  test('a process whose last append has no known outcome still looks the intent up', async () => {
    await using processes = await openTwoCommandProcesses({
      RECOVERY_DELAYS_MS: Array(50).fill('100').join(),
      REQUEST_BUDGET_MS: '400',
      PROVIDER_TIMEOUT_MS: '400',
    });
    const { a } = processes;
    await warm(a);
    const id = await authorized(a);
    a.store.loseResponses = Number.POSITIVE_INFINITY;
    expect((await a.change('capture', id)).status).toBe(503);
    await until('it is asked about', () => a.faults.questions > 0);
    a.store.loseResponses = 0;
    await until('it is ended', async () =>
      (await typesOf(processes, id)).includes('PaymentCaptureDeclined'),
    );
  });

  test('conflicts past the budget: 503 with Retry-After, never 500', async () => {
    await using processes = await openTwoCommandProcesses({
      ...NO_RETRIES,
      REQUEST_BUDGET_MS: '400',
      PROVIDER_TIMEOUT_MS: '400',
    });
    const { a, b } = processes;
    await warm(a, b);
    const id = idOf(await a.create({ captureNow: true, amount: 9_000_000 }));
    b.store.beforeAppend = async () => {
      await a.change('refund', id, { refundAmount: 1 });
    };
    const response = await b.change('refund', id, { refundAmount: 2 });
    expect([response.status, response.json.error]).toEqual([503, 'SERVICE_UNAVAILABLE']);
    expect(response.headers).toMatchObject({ 'retry-after': '1' });
    b.store.beforeAppend = undefined;
  });
});

/** Sends 64 commands at once, every other one from the other process. */
const race = (
  processes: TwoCommandProcesses,
  send: (at: CommandProcess, n: number) => Promise<CommandResponse>,
) => Promise.all(Array.from({ length: 64 }, (_, n) => send(n % 2 ? processes.a : processes.b, n)));
const countOf = (responses: CommandResponse[], status: number): number =>
  responses.filter((response) => response.status === status).length;

describe('faults, races: 64 at once on one payment, from two processes', () => {
  test('capture against void: one of all of them succeeds', async () => {
    const id = await authorized(processes.a);
    const responses = await race(processes, (at, n) =>
      at.change(n % 4 < 2 ? 'capture' : 'void', id, n % 4 < 2 ? { amount: n + 1 } : undefined),
    );
    expect([countOf(responses, 200), countOf(responses, 422)]).toEqual([1, 63]);
    expect(await kindsOf(processes, id)).toHaveLength(2);
  });

  test('refunds: their sum stays within what was captured, and uses it up', async () => {
    const id = idOf(await processes.a.create({ captureNow: true }));
    const responses = await race(processes, (at) => at.change('refund', id, { refundAmount: 100 }));
    expect([countOf(responses, 200), countOf(responses, 422)]).toEqual([25, 39]);
    expect(await processes.state(id)).toMatchObject({ status: 'REFUNDED', refundedAmount: 2500 });
    expect(await kindsOf(processes, id)).toHaveLength(26);
  });
});
