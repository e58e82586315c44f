/** The client of MongoDB: its settings, and the meaning of its errors. */
import {
  MongoBulkWriteError,
  MongoClient,
  type MongoClientOptions,
  MongoError,
  MongoNetworkError,
  MongoNetworkTimeoutError,
  MongoServerError,
} from 'mongodb';
import { ReadModelsUnavailable } from '../errors.ts';

const DUPLICATE_KEY = 11000;
const NAMESPACE_NOT_FOUND = 26;

const CLIENT_OPTIONS: MongoClientOptions = {
  appName: 'payments',
  // The client's defaults acknowledge writes that a failover loses, and wait 30 s for a dead server.
  writeConcern: { w: 'majority', j: true, wtimeoutMS: 2000 },
  readConcern: { level: 'majority' },
  readPreference: 'primary',
  serverSelectionTimeoutMS: 2000,
  connectTimeoutMS: 2000,
  socketTimeoutMS: 5000,
  waitQueueTimeoutMS: 1000,
  maxAdaptiveRetries: 0,
  maxPoolSize: 50,
  ignoreUndefined: true,
};

/** Connects with its first call. Throws ReadModelsUnavailable, one line, for an address that is none. */
export const clientOf = (url: string): MongoClient => {
  // The client would take "test" for no database. Its messages may repeat the password in the address.
  if (!/^mongodb(\+srv)?:\/\/[^/?#]+\/[^/?#]+(\?|$)/.test(url))
    throw new ReadModelsUnavailable(
      'the address of the read models names no MongoDB server and database',
    );
  try {
    return new MongoClient(url, CLIENT_OPTIONS);
  } catch {
    throw new ReadModelsUnavailable(
      'the address of the read models is not one that MongoDB understands',
    );
  }
};

/** For each call: the client connects by itself once, and if the server was away then, never again. */
export const connected = async (client: MongoClient): Promise<void> => {
  await client.connect();
};

/** The client wraps every error of a bulk write in a server's; one of the connection has no code then. */
const isOfServer = (error: MongoError): error is MongoServerError =>
  error instanceof MongoServerError &&
  (!(error instanceof MongoBulkWriteError) || error.code !== undefined);

/** Without the server's message about an operation, which may quote a document. */
const reasonOf = (error: MongoError): string => {
  if (isOfServer(error))
    return `the read models' server refused: ${error.codeName ?? error.code ?? error.name}`;
  return `the read models cannot be reached: ${error.message.split('\n', 1)[0] ?? error.name}`;
};

const BROKEN_SOCKET = new Set<unknown>(['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED']);

/** The client hands on Node's own error of a write to a connection that the server has just ended. */
const isBrokenSocket = (error: unknown): boolean =>
  BROKEN_SOCKET.has((error as { code?: unknown } | undefined)?.code);

/** One line for the log, and whether the server is gone. Undefined for an error that is about documents. */
export const mongoFailureOf = (error: unknown): { reason: string; gone: boolean } | undefined => {
  if (isBrokenSocket(error))
    return { reason: 'the read models cannot be reached: the connection broke', gone: true };
  if (isDuplicate(error) || !(error instanceof MongoError)) return undefined;
  // A server that answers with an error is reachable.
  return { reason: reasonOf(error), gone: !isOfServer(error) };
};

/** True where another writer has stored a document of that id, and nothing else went wrong. */
export const isDuplicate = (error: unknown): boolean => {
  if (error instanceof MongoBulkWriteError) {
    const failed = [error.writeErrors].flat();
    return failed.length > 0 && failed.every((one) => one.code === DUPLICATE_KEY);
  }
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
};

/** For `catch`: another writer was quicker, so this write changed nothing. */
export const orUnchanged = (error: unknown): { matchedCount: number; upsertedCount: number } => {
  if (isDuplicate(error)) return { matchedCount: 0, upsertedCount: 0 };
  throw error;
};

/** The places, in a bulk, of the writes that met a document of the same id. Throws any other error. */
export const duplicatesIn = async (writing: Promise<unknown>): Promise<Set<number>> => {
  try {
    await writing;
    return new Set();
  } catch (error) {
    if (!(error instanceof MongoBulkWriteError) || !isDuplicate(error)) throw error;
    return new Set([error.writeErrors].flat().map(({ index }) => index));
  }
};

/** Runs a call that may be made twice once more after a broken connection. */
export const againAfterBreak =
  <T>(run: () => Promise<T>) =>
  (error: unknown): Promise<T> => {
    const isBroken =
      isBrokenSocket(error) ||
      (error instanceof MongoNetworkError && !(error instanceof MongoNetworkTimeoutError)) ||
      (error instanceof MongoBulkWriteError && !isOfServer(error));
    if (isBroken) return run();
    throw error;
  };

export const unlessMissing = (error: unknown): void => {
  if (!(error instanceof MongoServerError && error.code === NAMESPACE_NOT_FOUND)) throw error;
};
