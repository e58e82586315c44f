/**
 * A provider that opens something before it moves money (ADR-0200): what it opened is durable before
 * the money moves, and its absence proves that none did, at the revision at which it was judged.
 */
import { expect, test } from '@jest/globals';
import { startSweep } from '../../command-api/recovery/sweep.ts';
import { opening } from '../support/opening-provider.ts';
import { idOf, locatedId } from '../support/service-in-process.ts';
import {
  type CommandProcess,
  PAST_FLIGHT_MS,
  processesOfTests,
} from '../support/two-command-processes.ts';
import { until } from '../support/until.ts';

const processes = await processesOfTests({ RECOVERY_DELAYS_MS: '600000' }, opening);

const typesOf = async (id: string): Promise<string[]> =>
  (await processes.events(id)).map(({ event }) => event.type);
const statusOf = async (id: string): Promise<string> => (await processes.state(id)).status;
const kindsOf = async (id: string): Promise<string[]> =>
  (await processes.ledger(id)).map(({ kind }) => kind);

/** Stops a process at its next append but `passing`, until it is released. */
const holdAppend = (at: CommandProcess, passing: number) => {
  const begun = Promise.withResolvers<string>();
  const released = Promise.withResolvers<void>();
  let appends = 0;
  at.store.beforeAppend = async (stream) => {
    appends += 1;
    if (appends !== passing + 1) return;
    begun.resolve(stream.replace('payment-', ''));
    await released.promise;
  };
  return { begun: begun.promise, release: released.resolve };
};

test('what was opened stands between intent and outcome, and later operations name it', async () => {
  const id = idOf(await processes.a.create());
  const types = ['PaymentCreated', 'PaymentProviderOpened', 'PaymentAuthorized'];
  expect(await typesOf(id)).toEqual(types);
  await processes.a.change('capture', id);
  const sent = processes.a.faults.calls.at(-1);
  const { operations } = await processes.state(id);
  expect(sent).toMatchObject({
    kind: 'CAPTURE',
    authorizationId: operations[0]?.operationId,
    authorizationReference: operations[0]?.reference,
  });
});

test('an unknown outcome is question for by what was opened, and found', async () => {
  const { a } = processes;
  a.faults.respondsToLookUps = false;
  a.faults.next('answer lost');
  const id = locatedId(await a.create({ captureNow: true }));
  a.faults.respondsToLookUps = true;
  a.side.unresolved.track(id);
  await until('it is found', async () => (await statusOf(id)) === 'CAPTURED');
  expect(await kindsOf(id)).toEqual(['SALE']);
});

test('the sweep of the log takes what was opened for no end of its operation', async () => {
  const { a } = processes;
  const before = await processes.store.end();
  a.faults.respondsToLookUps = false;
  a.faults.next('answer lost');
  const id = locatedId(await a.create());
  expect(await typesOf(id)).toEqual(['PaymentCreated', 'PaymentProviderOpened']);
  const tracked: string[] = [];
  const sweep = startSweep({
    store: processes.store,
    readModels: {
      checkpoint: async () => before,
      unresolved: async () => [],
      parked: async () => [],
    },
    unresolved: { track: (found) => void tracked.push(found), dropResolved: async () => undefined },
    logger: { warn: () => undefined },
  });
  await sweep.now();
  sweep.stop();
  expect(tracked).toEqual([id]);
});

test('a fence that was judged before something was opened is not recorded over it', async () => {
  const { a, b } = processes;
  const append = holdAppend(a, 1);
  const sale = a.create({ captureNow: true });
  const id = await append.begun;
  const question = Promise.withResolvers<void>();
  b.clock.aheadMs = PAST_FLIGHT_MS;
  b.faults.beforeResponse = question.promise;
  b.side.unresolved.track(id);
  await until('the other process asks', () => b.faults.questions > 0);
  append.release();
  // Its outcome is held back, so that the fence meets what was opened and nothing else.
  const outcome = holdAppend(a, 0);
  await outcome.begun;
  expect(await kindsOf(id)).toEqual(['SALE']);
  b.faults.beforeResponse = undefined;
  question.resolve();
  await until('the fence has come', () =>
    b.lines.some(({ message }) => message === 'a fence came too early: it is not recorded'),
  );
  expect(await statusOf(id)).toBe('PENDING');
  outcome.release();
  expect((await sale).status).toBe(200);
  expect(await statusOf(id)).toBe('CAPTURED');
});

test('nothing is opened on an operation that was fenced: its money never moves', async () => {
  const { a, b } = processes;
  const append = holdAppend(a, 1);
  const sale = a.create({ captureNow: true });
  const id = await append.begun;
  b.clock.aheadMs = PAST_FLIGHT_MS;
  b.side.unresolved.track(id);
  await until('it is fenced', async () => (await statusOf(id)) === 'FAILED');
  append.release();
  expect((await sale).status).toBe(503);
  expect(await typesOf(id)).toEqual(['PaymentCreated', 'PaymentFailed']);
  expect(await kindsOf(id)).toEqual([]);
});
