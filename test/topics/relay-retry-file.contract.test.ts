import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { memoryFeedDriver } from '../support/feed-drivers.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { describeRelayRetry } from './describe-relay-retry.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describeRelayRetry({
  ...memoryFeedDriver,
  name: 'checkpoint in a file',
  document: () => {
    const file = join(folder.path, `${crypto.randomUUID()}.json`);
    return () => fileDocument(file);
  },
});
