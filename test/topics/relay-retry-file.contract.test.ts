import { join } from 'node:path';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { memoryFeedDriver } from '../support/feed-drivers.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { describeRelayRetry } from './describe-relay-retry.ts';

const folder = folderOfTests();

describeRelayRetry({
  ...memoryFeedDriver,
  name: 'checkpoint in a file',
  document: () => {
    const file = join(folder, `${crypto.randomUUID()}.json`);
    return () => fileDocument(file);
  },
});
