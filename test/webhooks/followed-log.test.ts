/** The log as the thread of the deliverer follows it: every promise of a subscription, no further than it may. */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { openFollowedLog } from '../../shared/event-store/sqlite/log-reader.ts';
import { misfitOf } from '../../shared/subscription/subscription.ts';
import { batchOf, eventsOf } from '../event-store/opened.ts';
import { subscribingCases } from '../event-store/subscribing.cases.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A store whose subscriptions are those of a thread that learns of each append. */
const followed = async (file: string): Promise<EventStore> => {
  const own = await openSqliteEventStore({ file });
  const log = openFollowedLog(file, await own.end());
  return {
    ...own,
    subscribe: log.subscribe,
    append: async (...args) => {
      const stored = await own.append(...args);
      log.grow(await own.end());
      return stored;
    },
    close: async () => {
      log.close();
      await own.close();
    },
  };
};

subscribingCases({
  name: 'a followed log',
  connectionless: 'a file in the same process',
  make: async () => {
    const folder = temporaryFolder();
    return {
      open: () => followed(join(folder.path, 'log.db')),
      remove: async () => folder.remove(),
    };
  },
});

test('what is stored beyond the end that was named is not read', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'log.db');
  const store = await openSqliteEventStore({ file });
  await store.append('payment-1', 'none', batchOf(2));
  const end = await store.end();
  const log = openFollowedLog(file, end);
  await store.append('payment-2', 'none', batchOf(2));
  const seen: string[] = [];
  const seenAtEnds: number[] = [];
  const stop = new AbortController();
  for await (const item of log.subscribe(null, stop.signal)) {
    if (item.kind === 'events') seen.push(...eventsOf([item]).map(({ stream }) => stream));
    else {
      seenAtEnds.push(seen.length);
      expect(await log.end()).toBe(seenAtEnds.length === 1 ? end : await store.end());
      if (seenAtEnds.length === 2) stop.abort();
      else log.grow(await store.end());
    }
  }
  expect(seenAtEnds).toEqual([2, 4]);
  expect(seen).toEqual(['payment-1', 'payment-1', 'payment-2', 'payment-2']);
  log.close();
  await store.close();
  folder.remove();
});

test.each([false, true])(
  'what was sent up to an event that is stored, and not announced yet, fits the log (with its hash: %s)',
  async (withHash) => {
    const folder = temporaryFolder();
    const file = join(folder.path, 'log.db');
    const store = await openSqliteEventStore({ file });
    await store.append('payment-1', 'none', batchOf(2));
    const log = openFollowedLog(file, await store.end());
    const { position = '', logHash = '' } =
      (await store.append('payment-2', 'none', batchOf(1)))[0] ?? {};
    expect(await misfitOf(log, position, withHash ? logHash : null)).toBeUndefined();
    expect(await misfitOf(log, `${Number(position) + 1}`, null)).toBe('ends before');
    log.close();
    await store.close();
    folder.remove();
  },
);
