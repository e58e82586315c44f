/** gaps §6, §7: appends whose response is lost, appends that conflict, and the request budget. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { expectError, idOf, NO_RETRIES } from '../support/service-in-process.ts';
import { HASTY } from '../support/time-bounds.ts';
import {
  authorizedAt,
  type CommandProcess,
  kindsOf,
  openTwoCommandProcesses,
  type TwoCommandProcesses,
  typesOf,
  warmUp,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const SHORT = { REQUEST_BUDGET_MS: '800', PROVIDER_TIMEOUT_MS: '800' };

let processes: TwoCommandProcesses;
/** Its budget is below the second in which a call has to begin: once spent, it alone keeps the call back. */
let hurried: CommandProcess;

beforeAll(async () => {
  processes = await openTwoCommandProcesses(NO_RETRIES);
  hurried = await processes.open({ settings: SHORT });
  await warmUp(hurried);
});
afterEach(() => processes.calm());
afterAll(() => processes[Symbol.asyncDispose]());

describe('gaps §6, §7: appends that fail or conflict', () => {
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
    [
      'under a key is ended by the fence alone: a lost log may have sent it',
      { key: 'k' },
      'FENCED',
    ],
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
