import { join } from 'node:path';
import { newThread } from '../../embedded/jobs.ts';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { describeEventStore } from './describe-event-store.ts';

describeEventStore({
  name: 'sqlite',
  undeletable: 'only a writer of its file can delete a stream',
  connectionless: 'a file in the same process',
  make: async () => {
    const folder = temporaryFolder();
    return {
      open: () => openSqliteEventStore({ file: join(folder.path, 'events.db'), newThread }),
      remove: async () => folder.remove(),
    };
  },
});
