/**
 * The EventStoreDB driver when the server, or the way to it, goes wrong (docs/eventstoredb.md, ADR-0032): no
 * call stays pending, nothing is stored twice, a subscription comes back with nothing lost or
 * doubled, and no rejection is left unhandled. The server is a stand-in on a real socket.
 */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import {
  AppendOutcomeUnknown,
  RevisionConflict,
  StoreUnavailable,
} from '../../shared/event-store/errors.ts';
import {
  type EventStoreDb,
  openEventStoreDb,
} from '../../shared/event-store/eventstoredb/event-store.ts';
import type { NewEvent, Position, RecordedEvent } from '../../shared/event-store/port.ts';
import { logPages } from '../../shared/event-store/scan-log.ts';
import type { AppendFault, Drop, Fault } from '../support/eventstoredb-stand-in/faults.ts';
import { type StandIn, startStandIn } from '../support/eventstoredb-stand-in.ts';
import { refusedUrl } from '../support/faulty-server.ts';
import { freePort } from '../support/free-port.ts';
import { shareOf } from '../support/long-run-share.ts';
import { authorized, captureRequested, created, newEvent } from '../support/payment-events.ts';
import { AWAITED_MS, ENDS_MS_MAX, HANGS_MS } from '../support/time-bounds.ts';
import { succeeds, until, within } from '../support/until.ts';
import { placed } from './opened.ts';

// The usual time of a call; where one try gets no answer and the next one does; where none does.
const CALL_MS = 5000;
const BRISK_MS = 2500;
const HASTY_MS = 200;
const FAULTS = shareOf<Fault>(
  ['clean end', 'not leader', 'silent', 'reset', 'unavailable', 'slow'],
  2,
);
const APPEND_FAULTS = shareOf<AppendFault>(['answer lost', 'wrong revision', ...FAULTS], 3);
const DROPS = shareOf<Drop>(['too slow', 'clean end', 'reset', 'not leader', 'silent'], 3);

let standIn: StandIn;
let store: EventStoreDb;
let brisk: EventStoreDb;
let hasty: EventStoreDb;
let warnings: string[];
let details: string[];
const unhandled: unknown[] = [];
process.on('unhandledRejection', (error) => unhandled.push(error));

const logger = {
  debug: (_: object, message: string) => void details.push(message),
  warn: (_: object, message: string) => void warnings.push(message),
};
const backOff = { minMs: 5, maxMs: 40 };
const open = (url: string, callTimeoutMs = CALL_MS) =>
  openEventStoreDb({ url, logger, callTimeoutMs, silenceMsMax: 80, backOff });
const batch = (): NewEvent[] => [newEvent(created()), newEvent(authorized())];
const at = (event: RecordedEvent | undefined) => ({
  revision: event?.revision ?? -1,
  hash: event?.hash ?? '',
});

/** Ends in time, with an error of the port if it fails. */
async function resolved<T>(work: () => Promise<T>): Promise<T | Error> {
  const result = await within(ENDS_MS_MAX, () => work().catch((error: Error) => error));
  if (result instanceof Error) {
    const kinds = [AppendOutcomeUnknown, RevisionConflict, StoreUnavailable];
    expect(kinds.some((kind) => result instanceof kind)).toBe(true);
    expect(result.message).not.toContain('\n');
  }
  return result;
}

const storedTwice = () => [...standIn.idCounts()].filter(([, count]) => count > 1);

beforeEach(async () => {
  warnings = [];
  details = [];
  // One test starts another at the same port.
  standIn = await startStandIn({ port: await freePort(), noisy: true });
  store = await open(standIn.url);
  brisk = await open(standIn.url, BRISK_MS);
  hasty = await open(standIn.url, HASTY_MS);
});
afterEach(async () => {
  standIn.freeze(false);
  await Promise.all([store.close(), brisk.close(), hasty.close()]);
  await standIn.close();
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});

describe('an append', () => {
  test.each(APPEND_FAULTS)(
    '%s once, then for good: ends in time, says what it knows, and is stored once',
    async (fault) => {
      standIn.fail('append', fault, 1);
      const events = batch();
      const once = await resolved(() => store.append('payment-1', 'none', events));
      if (fault === 'wrong revision') expect(once).toBeInstanceOf(RevisionConflict);
      else await placed(store, Promise.resolve(once as RecordedEvent[]));
      const [, first] = await store.append('payment-1', 'none', events);
      expect(await store.readStream('payment-1')).toHaveLength(2);

      standIn.fail('append', fault);
      const event = newEvent(captureRequested());
      const responds = ['slow', 'not leader', 'wrong revision'].includes(fault);
      const called = responds ? brisk : hasty;
      const result = await resolved(() => called.append('payment-1', at(first), [event]));
      if (fault === 'not leader') expect(result).toBeInstanceOf(StoreUnavailable);
      else if (fault === 'slow') expect(result).toHaveLength(1);
      else if (fault === 'wrong revision') expect(result).toBeInstanceOf(RevisionConflict);
      else expect(result).toBeInstanceOf(Error);
      if (result instanceof StoreUnavailable)
        expect(await store.readStream('payment-1')).toHaveLength(2);
      standIn.fail('append', undefined);
      expect(await store.append('payment-1', at(first), [event])).toMatchObject([{ revision: 2 }]);
      expect(await store.readStream('payment-1')).toHaveLength(3);
      expect(storedTwice()).toEqual([]);
    },
  );

  test('after two exceeded deadlines in a row it is sent by a new client', async () => {
    standIn.fail('append', 'silent', 2);
    // Its third try is left a fifth of its time, in which it connects anew.
    const patient = await open(standIn.url, 5 * AWAITED_MS);
    expect(await patient.append('payment-1', 'none', batch())).toHaveLength(2);
    expect(details).toEqual([expect.stringMatching('two event store calls in a row timed out')]);
    await patient.close();
  });

  test('V2: a frozen server does not hold up the close: what is under way is unknown, and stored once', async () => {
    await store.append('payment-1', 'none', batch());
    const closed = await open(standIn.url, HANGS_MS);
    standIn.freeze(true);
    const events = batch();
    const appending = closed.append('payment-2', 'none', events);
    const reading = closed.readStream('payment-1');
    const outcomes = Promise.allSettled([appending, reading]);
    await within(ENDS_MS_MAX, () => closed.close());
    expect(await outcomes).toMatchObject([
      { reason: expect.any(AppendOutcomeUnknown) },
      { reason: expect.any(StoreUnavailable) },
    ]);
    standIn.freeze(false);
    expect(await store.append('payment-2', 'none', events)).toHaveLength(2);
    expect(storedTwice()).toEqual([]);
  });

  test('a forgotten hash is asked for', async () => {
    const [first, second] = await store.append('payment-1', 'none', batch());
    const other = await open(standIn.url);
    const wrong = { revision: 1, hash: first?.hash ?? '' };
    await expect(other.append('payment-1', wrong, batch())).rejects.toThrow(RevisionConflict);
    expect(
      await other.append('payment-1', at(second), [newEvent(captureRequested())]),
    ).toMatchObject([{ revision: 2, previousHash: second?.hash }]);
    await other.close();
  });
});

describe('a read', () => {
  const reads: ((from: EventStoreDb) => Promise<unknown>)[] = [
    (from) => from.readStream('payment-1'),
    (from) => from.lastRevision('payment-1'),
    (from) => from.readAll(null, 10),
    (from) => from.end(),
    (from) => from.head(null),
    (from) => from.claimMeta('key', 'other'),
  ];

  test.each(FAULTS)(
    '%s: the right answer or StoreUnavailable, in time, never a wrong one',
    async (fault) => {
      await store.append('payment-1', 'none', batch());
      await store.claimMeta('key', 'value');
      const right = await Promise.all(reads.map((read) => read(store)));
      for (const count of [1, 1000]) {
        standIn.fail('read', fault, count);
        const results = await Promise.all(reads.map((read) => resolved(() => read(hasty))));
        for (const [index, result] of results.entries()) {
          if (result instanceof Error) expect(result).toBeInstanceOf(StoreUnavailable);
          else expect(result).toEqual(right[index]);
        }
        standIn.fail('read', undefined);
      }
      expect(await Promise.all(reads.map((read) => read(store)))).toEqual(right);
    },
  );
});

describe('a page of a scan of the whole log', () => {
  const readPage = (from: EventStoreDb, end: Position | null, { signal } = new AbortController()) =>
    logPages(from.stored, null, end, signal).next();

  test('is read again where the server does not respond', async () => {
    const stored = await placed(store, store.append('payment-1', 'none', batch()));
    const end = await brisk.end();
    standIn.fail('read', 'silent', 1);
    expect((await readPage(brisk, end)).value).toMatchObject({
      page: stored.map(({ position }) => ({ position })),
    });
  });

  test('is not read again for a scan that was stopped, so that no stop waits for it', async () => {
    await store.append('payment-1', 'none', batch());
    const end = await brisk.end();
    standIn.fail('read', 'silent', 1);
    const stopping = new AbortController();
    const page = readPage(brisk, end, stopping);
    stopping.abort();
    await expect(page).rejects.toThrow(StoreUnavailable);
  });
});

describe('a subscription', () => {
  /** Follows the log while `go` writes to it; gives what was delivered until `count` have come. */
  async function follow(
    count: number,
    go: (n: number) => Promise<void>,
    reader = store,
  ): Promise<string[]> {
    const stop = new AbortController();
    const seen: string[] = [];
    const delivered = (async () => {
      for await (const item of reader.subscribe(null, stop.signal)) {
        if (item.kind === 'events') seen.push(...item.events.map(({ position }) => position));
        if (seen.length >= count) stop.abort();
      }
    })();
    for (let n = 0; n < count; n++) {
      await go(n);
      await store.append(`payment-${n}`, 'none', [newEvent(created())]);
    }
    await until(`${count} events delivered, ${seen.length} have come`, () => seen.length >= count);
    await delivered;
    return seen;
  }
  const whole = async () => (await store.readAll(null, 100)).map(({ position }) => position);

  test.each(DROPS)('dropped (%s) comes back with nothing lost or doubled', async (how) => {
    const seen = await follow(6, async (n) => {
      if (n > 0 && n % 2 === 0) standIn.drop(how);
    });
    expect(seen).toEqual(await whole());
    expect(standIn.calls.subscribe).toBeGreaterThan(1);
    expect(warnings).toEqual([]);
  });

  test.each(FAULTS)('that begins with %s still delivers every event', async (fault) => {
    standIn.fail('subscribe', fault, 1);
    const seen = await follow(3, async () => undefined, brisk);
    expect(seen).toEqual(await whole());
  });

  test('ADR-0036: to some types is not made anew while others alone are written, and is when it misses one', async () => {
    const stop = new AbortController();
    const seen: string[] = [];
    const delivered = (async () => {
      for await (const item of store.subscribe(null, stop.signal, ['PaymentCreated']))
        if (item.kind === 'events') seen.push(...item.events.map(({ stream }) => stream));
    })();
    await store.append('payment-1', 'none', batch());
    await until('the first came', () => seen.length === 1);
    const { readAll } = standIn.calls;
    await until('its silence was looked into', () => standIn.calls.readAll >= readAll + 3);
    expect(standIn.calls.subscribe).toBe(1);
    standIn.drop('silent');
    await store.append('payment-2', 'none', batch());
    await until('the second came', () => seen.length === 2);
    stop.abort();
    await delivered;
    expect(seen).toEqual(['payment-1', 'payment-2']);
  });

  test('of a stopped server logs one warning, and goes on when the server is back', async () => {
    const port = Number(/:(\d+)/.exec(standIn.url.slice('esdb://'.length))?.[1]);
    await store.append('payment-1', 'none', batch());
    const stop = new AbortController();
    let seen = 0;
    const delivered = (async () => {
      for await (const item of store.subscribe(null, stop.signal)) {
        if (item.kind === 'events') seen += item.events.length;
      }
    })();
    await until('the first events', () => seen === 2);
    await standIn.close();
    await until('a warning', () => warnings.length > 0);
    standIn = await startStandIn({ port, noisy: true });
    // Another log, whose positions go on: what counts is that the subscription is there again.
    for (let n = 0; n < 10; n++) standIn.foreign('$stats');
    await until('a subscription', () => standIn.calls.subscribe > 0);
    await store.append('payment-2', 'none', batch());
    await until('the next events', () => seen === 4);
    expect(warnings).toHaveLength(1);
    stop.abort();
    await delivered;
  });
});

describe('opening', () => {
  test('does not need the server, whose absence stores nothing and is said at once', async () => {
    const url = (await refusedUrl()).replace('http', 'esdb');
    const early = await open(`${url}?tls=false`);
    const result = await resolved(() => early.append('payment-1', 'none', batch()));
    expect(result).toBeInstanceOf(StoreUnavailable);
    await expect(early.ping()).rejects.toThrow(StoreUnavailable);
    standIn.close();
    standIn = await startStandIn({ port: Number(new URL(url.replace('esdb', 'http')).port) });
    await until('the server answers', () => succeeds(early.ping()));
    expect(await early.append('payment-1', 'none', batch())).toHaveLength(2);
    await early.close();
  });

  test.each([
    ['', /esdb/],
    ['http://localhost:2113', /esdb/],
    ['esdb://', /esdb/],
    ['esdb://localhost:2113', /user:password@/],
    ['esdb://admin:s3cret@localhost:port?tls=false', /cannot be read/],
    ['esdb://admin:s3cret@localhost:2113?tls=perhaps', /cannot be read/],
  ])('%p is refused in one line without a secret', async (url, reason) => {
    const refused = open(url);
    await expect(refused).rejects.toThrow(/^EVENTSTOREDB_URL /);
    await expect(refused).rejects.toThrow(reason);
    await expect(refused).rejects.not.toThrow(/s3cret|\n/);
  });
});
