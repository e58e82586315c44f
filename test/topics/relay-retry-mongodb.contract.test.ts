import { afterAll } from '@jest/globals';
import { mongoKeyDocument } from '../../shared/read-models/mongodb/key-document.ts';
import { memoryFeedDriver } from '../support/feed-drivers.ts';
import { mongoServer } from '../support/mongo-server.ts';
import { describeRelayRetry } from './describe-relay-retry.ts';

const mongo = await mongoServer();
const database = 'skip' in mongo ? undefined : mongo.database();
afterAll(() => database?.drop());

describeRelayRetry({
  ...memoryFeedDriver,
  name: `checkpoint in ${mongo.name}`,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  document: () => {
    const name = crypto.randomUUID();
    return () => mongoKeyDocument({ url: database?.url ?? '', name });
  },
});
