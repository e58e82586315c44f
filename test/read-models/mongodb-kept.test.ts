/** What an operator deletes to have the read models in MongoDB filled anew leaves topics and webhooks where they were. */
import { runInNewContext } from 'node:vm';
import { expect, test } from '@jest/globals';
import { MongoClient } from 'mongodb';
import { mongoKeyDocument } from '../../shared/read-models/mongodb/key-document.ts';
import { openMongoReadModels } from '../../shared/read-models/mongodb/read-models.ts';
import { mongoDeliveries } from '../../webhooks/store/mongodb.ts';
import { mongoServer } from '../support/mongo-server.ts';
import { textOf } from '../support/project-files.ts';
import { READ_MODEL_SECRETS } from '../support/read-models-here.ts';
import { attempt } from '../webhooks/describe-delivery-store.ts';
import { change, readModelAt } from './opened.ts';

const mongo = await mongoServer();
const testOfMongo = 'skip' in mongo ? test.skip : test;

/** The page's script, in a shell as far as it needs one. */
const runScriptOfPage = async (url: string): Promise<string[]> => {
  const [, script = ''] = /^```js read-models\n(.*?)^```$/ms.exec(textOf('docs/backup.md')) ?? [];
  const client = await new MongoClient(url).connect();
  const db = client.db();
  const names = (await db.listCollections({}, { nameOnly: true }).toArray()).map((c) => c.name);
  const drops = new Map<string, Promise<boolean>>();
  runInNewContext(script, {
    db: {
      getCollectionNames: () => names,
      getCollection: (name: string) => ({
        drop: () => drops.set(name, db.dropCollection(name)),
      }),
    },
  });
  await Promise.all(drops.values());
  await client.close();
  return [...drops.keys()];
};

testOfMongo(
  'read models deleted as docs/backup.md says: they are gone, and nothing else is',
  async () => {
    if ('skip' in mongo) return;
    const database = mongo.database();
    const { url } = database;
    const open = () => openMongoReadModels({ url, secrets: READ_MODEL_SECRETS });
    const readModels = await open();
    const relay = mongoKeyDocument({ url, name: 'relay-checkpoint' });
    const deliveries = mongoDeliveries(url);
    try {
      await readModels.apply([change(readModelAt('pay_1', 0))], null, 'p1');
      await relay.save('the place of the relay', 0);
      await deliveries.save('we_1', 'the place of an endpoint', 0, [attempt(1)]);
      await readModels.close();

      expect(await runScriptOfPage(url)).not.toEqual([]);
      const filledAnew = await open();
      expect(await filledAnew.checkpoint()).toBeNull();
      expect(await filledAnew.get('pay_1', 'm_1')).toBeUndefined();
      await filledAnew.close();
      expect(await relay.load()).toEqual({ version: 1, text: 'the place of the relay' });
      expect(await deliveries.load('we_1')).toEqual({
        version: 1,
        text: 'the place of an endpoint',
      });
      expect(await deliveries.attempts('we_1', { limit: 10 })).toHaveLength(1);
    } finally {
      await relay.close();
      await deliveries.close();
      await database.drop();
    }
  },
);
