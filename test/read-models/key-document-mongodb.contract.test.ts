import { afterAll } from '@jest/globals';
import { mongoKeyDocument } from '../../shared/read-models/mongodb/key-document.ts';
import { mongoServer } from '../support/mongo-server.ts';
import { describeKeyDocument } from './describe-key-document.ts';

const mongo = await mongoServer();
const database = 'skip' in mongo ? undefined : mongo.database();
afterAll(() => database?.drop());

describeKeyDocument({
  name: mongo.name,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  open: (name) => mongoKeyDocument({ url: database?.url ?? '', name }),
});
