import { join } from 'node:path';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { keptThread } from '../support/once/kept-threads.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { describeEventStore } from './describe-event-store.ts';

describeEventStore({
  name: 'sqlite',
  undeletable: 'only a writer of its file can delete a stream',
  connectionless: 'a file in the same process',
  make: async () => {
    const folder = temporaryFolder();
    return {
      open: () => openSqliteEventStore({ file: join(folder.path, 'log'), newThread: keptThread }),
      remove: async () => folder.remove(),
    };
  },
});
