/** The commands that the drivers of this project send. */
import { BSON } from 'mongodb';
import {
  type Collection,
  type Document,
  foundIn,
  insertInto,
  projected,
  serverError,
  sorted,
  updateIn,
} from './documents.ts';

/** Its first name is the command. */
export type Command = Document & { $db: string };
/** Collections by their names, by the names of databases. */
export type Databases = Map<string, Map<string, Collection>>;

const collectionOf = (databases: Databases, { $db }: Command, name: unknown): Collection => {
  const database = databases.get($db) ?? new Map<string, Collection>();
  const collection = database.get(String(name)) ?? new Map();
  databases.set($db, database);
  database.set(String(name), collection);
  return collection;
};

const hello = () => ({
  helloOk: true,
  isWritablePrimary: true,
  ismaster: true,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  localTime: new Date(),
  logicalSessionTimeoutMinutes: 30,
  minWireVersion: 0,
  maxWireVersion: 21,
});

/** Does each of the writes; those that fail are named, and end the others where they are ordered. */
const writeEach = <T>(
  { ordered }: Document,
  writes: unknown,
  write: (one: T, index: number) => void,
): Document => {
  const writeErrors: Document[] = [];
  for (const [index, one] of (writes as T[]).entries()) {
    try {
      write(one, index);
    } catch (error) {
      const { code, message } = error as Error & { code?: number };
      writeErrors.push({ index, code: code ?? 1, errmsg: message });
      if (ordered !== false) break;
    }
  }
  return writeErrors.length === 0 ? {} : { writeErrors };
};

type Handler = (command: Command, databases: Databases) => Document;

const COMMANDS: Record<string, Handler> = {
  hello,
  ismaster: hello,
  ping: () => ({}),
  endSessions: () => ({}),
  // Ids alone are looked up: the stand-in reads everything for any other filter.
  createIndexes: () => ({}),
  find: (command, databases) => {
    const { find, filter = {}, sort, skip = 0, limit = 0, projection } = command;
    let found = foundIn(collectionOf(databases, command, find), filter as Document);
    if (sort !== undefined) found = sorted(found, sort as never);
    found = found.slice(
      skip as number,
      (limit as number) > 0 ? (skip as number) + (limit as number) : undefined,
    );
    if (projection !== undefined)
      found = found.map((one) => projected(one, projection as Document));
    return { cursor: { id: BSON.Long.ZERO, ns: `${command.$db}.${find}`, firstBatch: found } };
  },
  insert: (command, databases) => {
    const collection = collectionOf(databases, command, command.insert);
    const before = collection.size;
    const errors = writeEach<Document>(command, command.documents, (document) =>
      insertInto(collection, document),
    );
    return { n: collection.size - before, ...errors };
  },
  update: (command, databases) => {
    const collection = collectionOf(databases, command, command.update);
    const upserted: Document[] = [];
    let nModified = 0;
    const errors = writeEach<Parameters<typeof updateIn>[1]>(
      command,
      command.updates,
      (one, index) => {
        const done = updateIn(collection, one);
        if (done === 'changed') nModified += 1;
        if (done === 'added') upserted.push({ index, _id: one.q._id });
      },
    );
    return {
      n: nModified + upserted.length,
      nModified,
      ...(upserted.length > 0 && { upserted }),
      ...errors,
    };
  },
  delete: (command, databases) => {
    const collection = collectionOf(databases, command, command.delete);
    const before = collection.size;
    const errors = writeEach<{ q: Document; limit: number }>(
      command,
      command.deletes,
      ({ q, limit }) => {
        const found = foundIn(collection, q);
        for (const { _id } of limit === 1 ? found.slice(0, 1) : found) collection.delete(_id);
      },
    );
    return { n: before - collection.size, ...errors };
  },
  drop: ({ $db, drop }, databases) => {
    databases.get($db)?.delete(String(drop));
    return {};
  },
  dropDatabase: ({ $db }, databases) => {
    databases.delete($db);
    return {};
  },
  listCollections: ({ $db }, databases) => {
    const firstBatch = [...(databases.get($db)?.keys() ?? [])].map((name) => ({ name }));
    return { cursor: { id: BSON.Long.ZERO, ns: `${$db}.$cmd.listCollections`, firstBatch } };
  },
};

/** What the server says to a command, an error too. */
export const responseTo = (command: Command, databases: Databases): Document => {
  const name = Object.keys(command)[0] ?? '';
  try {
    const handler = COMMANDS[name];
    if (handler === undefined) throw serverError(59, `the stand-in does not know ${name}`);
    return { ...handler(command, databases), ok: 1 };
  } catch (error) {
    const { code, message } = error as Error & { code?: number };
    return { ok: 0, code: code ?? 1, errmsg: message };
  }
};
