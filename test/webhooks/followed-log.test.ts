/** The log as the thread of the deliverer follows it: every promise of a subscription. */
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { EventStore } from '../../shared/event-store/port.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { openFollowedLog } from '../../shared/event-store/sqlite/log-reader.ts';
import { misfitOf } from '../../shared/subscription/subscription.ts';
import { batchOf } from '../event-store/opened.ts';
import { subscribingCases } from '../event-store/subscribing.cases.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A store whose subscriptions are those of the thread. */
const followed = async (file: string): Promise<EventStore> => {
  const own = await openSqliteEventStore({ file });
  const log = openFollowedLog(file);
  return {
    ...own,
    subscribe: log.subscribe,
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

test.each([false, true])(
  'what was sent up to an event that is stored fits the log (with its hash: %s)',
  async (withHash) => {
    const folder = temporaryFolder();
    const file = join(folder.path, 'log.db');
    const store = await openSqliteEventStore({ file });
    await store.append('payment-1', 'none', batchOf(2));
    const log = openFollowedLog(file);
    const { position = '', logHash = '' } =
      (await store.append('payment-2', 'none', batchOf(1)))[0] ?? {};
    expect(await misfitOf(log, position, withHash ? logHash : null)).toBeUndefined();
    expect(await misfitOf(log, `${Number(position) + 1}`, null)).toBe('ends before');
    log.close();
    await store.close();
    folder.remove();
  },
);
