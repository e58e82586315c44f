/**
 * The stream of appends of the EventStoreDB driver (ADR-0007): each answer reaches its own append, a
 * bad append leaves its neighbours alone, and what was under way when the stream broke is sent
 * again: stored once, never called "not stored" when it may be. The server is a stand-in.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { RevisionConflict, StoreUnavailable } from '../../shared/event-store/errors.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import type { NewEvent, RecordedEvent } from '../../shared/event-store/port.ts';
import type { AppendFault } from '../support/eventstoredb-stand-in/faults.ts';
import type { StandInOptions } from '../support/eventstoredb-stand-in/log.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { timesOf } from '../support/long-run-share.ts';
import { created, newEvent } from '../support/payment-events.ts';
import { until } from '../support/until.ts';

const PENDING = timesOf(200, 40);
const logger = { debug: () => undefined, warn: () => undefined };
const closings: (() => Promise<void>)[] = [];
let standIn: StandIn;
let store: EventStoreDb;
const unhandled: unknown[] = [];
process.on('unhandledRejection', (error) => unhandled.push(error));

/** So long that a busy machine sends no append of hundreds a second time. */
const open = async (callTimeoutMs = 30_000): Promise<EventStoreDb> => {
  const opened = await openEventStoreDb({ url: standIn.url, logger, callTimeoutMs });
  closings.push(() => opened.close());
  return opened;
};
const start = async (options: StandInOptions): Promise<void> => {
  const started = await startStandIn({ noisy: true, ...options });
  closings.push(() => started.close());
  standIn = started;
  store = await open();
};
const one = (): NewEvent[] => [newEvent(created())];
const appendMany = (count: number, from = store): Promise<RecordedEvent[]>[] =>
  Array.from({ length: count }, (_, n) => from.append(`payment-${n}`, 'none', one()));

/** Every append was acknowledged with what its stream holds, and nothing is stored twice. */
async function storedOnce(appends: Promise<RecordedEvent[]>[]): Promise<void> {
  for (const events of await Promise.all(appends)) {
    expect(await store.readStream(events[0]?.stream ?? '')).toEqual(events);
  }
  expect(Math.max(...standIn.idCounts().values())).toBe(1);
}

/** Appends that have all reached a server which has answered none of them. */
async function underWay(count: number, from = store): Promise<Promise<RecordedEvent[]>[]> {
  standIn.freeze(true);
  const before = standIn.calls.append;
  const appends = appendMany(count, from);
  await until('all have arrived', () => standIn.calls.append >= before + count);
  return appends;
}

beforeEach(() => start({}));
afterEach(async () => {
  standIn.freeze(false);
  for (const close of closings.splice(0).reverse()) await close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});

describe('each answer reaches its own append', () => {
  test('over one stream, in whatever order the answers come', async () => {
    const appends = await underWay(PENDING);
    const order: number[] = [];
    for (const [n, append] of appends.entries()) void append.then(() => order.push(n));
    standIn.fail('append', 'slow', PENDING / 2);
    standIn.freeze(false);
    await storedOnce(appends);
    expect([order[0], order[PENDING / 2]]).toEqual([PENDING / 2, 0]);
    expect(standIn.calls).toMatchObject({ append: PENDING, appendStream: 1 });
  });

  test.each<AppendFault>(['answered twice', 'stray answer'])(
    '%s: no caller is misled',
    async (fault) => {
      standIn.fail('append', fault);
      await storedOnce(appendMany(20));
      expect(standIn.calls).toMatchObject({ append: 20, appendStream: 1 });
    },
  );

  test('a lost answer is asked for on another stream, and the neighbours keep theirs', async () => {
    const brisk = await open(5000);
    standIn.fail('append', 'answer lost', 2);
    await storedOnce(appendMany(20, brisk));
    expect(standIn.calls.append).toBe(22);
  });

  test('a wrong revision among good neighbours is the only one that fails', async () => {
    const [first] = await store.append('payment-0', 'none', one());
    const appends = appendMany(20);
    const results = await Promise.allSettled(appends);
    expect(results.flatMap(({ status }, n) => (status === 'rejected' ? [n] : []))).toEqual([0]);
    await expect(appends[0]).rejects.toThrow(RevisionConflict);
    await storedOnce(appends.slice(1));
    expect(await store.readStream('payment-0')).toEqual([first]);
    expect(standIn.calls.appendStream).toBe(1);
  });
});

describe('a stream that breaks', () => {
  test.each<AppendFault>(['reset', 'clean end', 'not leader', 'cut off'])(
    `by %s with ${PENDING} appends under way: all are sent again and stored once`,
    async (fault) => {
      const appends = await underWay(PENDING);
      const sent = standIn.calls.append;
      standIn.fail('append', fault, PENDING);
      standIn.freeze(false);
      await storedOnce(appends);
      expect(standIn.calls.append - sent).toBe(PENDING);
    },
  );
});

describe('an append that the server would reject', () => {
  test('of more than 1 MiB is not sent, for it could end the stream for its neighbours', async () => {
    const large = Array.from({ length: 2000 }, () => newEvent(created()));
    const refused = store.append('payment-large', 'none', large).catch((error: Error) => error);
    await storedOnce(appendMany(5));
    const error = await refused;
    expect(error).toBeInstanceOf(StoreUnavailable);
    expect(error).toMatchObject({
      message: 'event store: an append may carry 1048576 bytes, this one is larger',
    });
    expect(standIn.calls).toMatchObject({ append: 5, appendStream: 1 });
  });
});

test.each<[string, AppendFault | undefined, string]>([
  ['of more bytes than the server takes', undefined, 'an append may carry 1000 bytes'],
  ['for want of a right', 'access denied', 'the user lacks the right'],
])('an append that is rejected %s fails alone, after one try', async (_, fault, line) => {
  await start({ appendBytesMax: 1000 });
  standIn.fail('append', fault, 1);
  const refused = store.append('payment-1', 'none', [...one(), ...one(), ...one()]);
  await expect(refused).rejects.toThrow(new RegExp(`^event store: ${line}`));
  await expect(refused).rejects.toThrow(StoreUnavailable);
  await storedOnce(appendMany(5));
  expect(standIn.calls).toMatchObject({ append: 6, appendStream: 1 });
});

describe('two drivers on one server', () => {
  test('have a stream each: the end of one leaves what the other has under way alone', async () => {
    const other = await open();
    await other.append('payment-other', 'none', one());
    const appends = await underWay(20);
    await other.close();
    standIn.freeze(false);
    await storedOnce(appends);
    expect(standIn.calls).toMatchObject({ append: 21, appendStream: 2 });
  });
});
