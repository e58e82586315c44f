import { afterAll } from '@jest/globals';
import { mongoDeliveries } from '../../../shared/read-models/mongodb/deliveries.ts';
import { ATTEMPTS_MAX } from '../../../shared/webhooks/delivery-store/port.ts';
import { mongoServer } from '../../support/mongo-server.ts';
import { describeDeliveryStore } from './describe-delivery-store.ts';

const mongo = await mongoServer();
const database = 'skip' in mongo ? undefined : mongo.database();
afterAll(() => database?.drop());

describeDeliveryStore({
  name: mongo.name,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  open: () => mongoDeliveries({ url: database?.url ?? '', attemptsMax: ATTEMPTS_MAX }),
});
