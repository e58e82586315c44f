import { MongoClient } from 'mongodb';
import { mongoServer } from '../support/mongo-server.ts';
import { describeKeyStore } from './describe-key-store.ts';

const mongo = await mongoServer();

describeKeyStore({
  name: mongo.name,
  skip: 'skip' in mongo ? mongo.skip : undefined,
  place: () => {
    if ('skip' in mongo) throw new Error(mongo.skip);
    const { url, drop } = mongo.database();
    const client = new MongoClient(url);
    const keys = client
      .db()
      .collection<{ _id: string; kek: string; wrapped: unknown; erasedAt?: string | null }>(
        'personal_keys',
      );
    return {
      mongoUrl: url,
      fileOf: (name) => {
        throw new Error(`${name} is not needed`);
      },
      rows: {
        get: async (_id) => {
          const row = await keys.findOne({ _id });
          if (row === null) throw new Error(`no row ${_id}`);
          const { kek, wrapped, erasedAt = null } = row;
          return { kek, wrapped, erasedAt };
        },
        set: async (_id, row) => void (await keys.updateOne({ _id }, { $set: row })),
        add: async (_id, row) => void (await keys.insertOne({ _id, ...row })),
      },
      drop: async () => {
        await client.close();
        await drop();
      },
    };
  },
});
