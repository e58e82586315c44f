/** The server of MONGODB_URL, else the stand-in, and a database of its own for each test. */
import type { MongoClient } from 'mongodb';
import { startMongoStandIn } from './mongodb-stand-in.ts';

export type MongoDatabase = { url: string; drop(): Promise<void> };
/** `name` is the driver's in the titles of its tests. */
type MongoServer = { name: string; database(): MongoDatabase };

const SELECTION_MS = 2000;

const urlOf = (url: string, name: string): string =>
  url.replace(/^(mongodb(?:\+srv)?:\/\/[^/?#]+)(?:\/[^?#]*)?/, `$1/${name}`);

const connect = async (url: string): Promise<MongoClient> => {
  const { MongoClient } = await import('mongodb');
  const client = new MongoClient(url, { serverSelectionTimeoutMS: SELECTION_MS });
  await client.connect();
  return client;
};

const drop = async (url: string): Promise<void> => {
  const client = await connect(url);
  await client.db().dropDatabase();
  await client.close();
};

/** Without a server there is a name all the same, and the reason. */
type Missing = { name: string; skip: string };

let found: Promise<MongoServer | Missing> | undefined;

const find = async (): Promise<MongoServer | Missing> => {
  const own = process.env.MONGODB_URL;
  const isStandIn = own === undefined || own === '';
  const url = isStandIn ? await startMongoStandIn() : own;
  try {
    await (await connect(url)).close();
  } catch {
    return { name: 'mongodb', skip: `nothing answers at MONGODB_URL within ${SELECTION_MS} ms` };
  }
  return {
    name: isStandIn ? 'mongodb (stand-in)' : 'mongodb',
    database: () => {
      const database = urlOf(url, `test_${crypto.randomUUID().replaceAll('-', '').slice(0, 24)}`);
      return { url: database, drop: () => drop(database) };
    },
  };
};

/** The server to test against, or in a few words why there is none. */
export const mongoServer = (): Promise<MongoServer | Missing> => {
  found ??= find();
  return found;
};
