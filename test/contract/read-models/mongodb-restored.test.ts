/** A server of MongoDB whose files are put back to what they were before a batch that it never finished. */
import { expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { ReadModelsUnavailable } from '../../../shared/read-models/errors.ts';
import { openMongoReadModels } from '../../../shared/read-models/mongodb/read-models.ts';
import { mongoServer } from '../../support/mongo-server.ts';
import { READ_MODEL_SECRETS } from '../../support/read-models-here.ts';
import { tcpProxy } from '../../support/tcp-proxy.ts';
import { until } from '../../support/until.ts';
import { change, readModelAt } from './opened.ts';

const mongo = await mongoServer();
const testOfMongo = 'skip' in mongo ? test.skip : test;

/** Removes a payment's document, as a copy from before its first event does. */
const removeDocument = async (url: string, _id: string): Promise<void> => {
  const client = await new MongoClient(url).connect();
  const names = await client.db().listCollections({}, { nameOnly: true }).toArray();
  const { name = '' } = names.find((one) => one.name.endsWith('_payments')) ?? {};
  await client.db().collection<{ _id: string }>(name).deleteOne({ _id });
  await client.close();
};

testOfMongo(
  'P1: the documents of a batch whose checkpoint was not stored are read again, not remembered',
  async () => {
    if ('skip' in mongo) return;
    const database = mongo.database();
    const { hostname, port, pathname } = new URL(database.url);
    const proxy = await tcpProxy(hostname, Number(port));
    const url = `mongodb://127.0.0.1:${proxy.port}${pathname}?directConnection=true`;
    const readModels = await openMongoReadModels({ url, secrets: READ_MODEL_SECRETS });
    try {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      // The documents are stored by then.
      proxy.beforeRequest('position', () => proxy.shut());
      const batch = [change(readModelAt('pay_1', 1)), change(readModelAt('pay_2', 0))];
      await expect(readModels.apply(batch, 'p1', 'p2')).rejects.toThrow(ReadModelsUnavailable);
      await removeDocument(database.url, 'pay_2');
      proxy.open();
      await until('the read models are back', () =>
        readModels.ping().then(
          () => true,
          () => false,
        ),
      );
      expect(await readModels.checkpoint()).toBe('p1');
      expect(await readModels.load('pay_1')).toMatchObject({ revision: 1 });
      expect(await readModels.load('pay_2')).toBeUndefined();
      await readModels.apply(batch, 'p1', 'p2');
      expect(await readModels.getAny('pay_2')).toMatchObject({ revision: 0 });
    } finally {
      await readModels.close();
      await proxy.close();
      await database.drop();
    }
  },
);
