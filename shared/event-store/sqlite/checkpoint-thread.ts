/**
 * The thread that moves the write-ahead log into the file of the event store while appends go on, over a
 * connection of its own. Each message of checkpoints.ts asks for one round and is replied to with null,
 * or with a failure.
 */
import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { failureOf, messageOf, openForCheckpoints } from './database.ts';
import type { Failure } from './messages.ts';

const port = parentPort;
if (port === null) throw new Error('checkpoint-thread.ts runs as a worker thread only');
let database: DatabaseSync | undefined;

function round(): Failure | null {
  try {
    database ??= openForCheckpoints(workerData as string);
  } catch (error) {
    return { kind: 'unusable', message: messageOf(error), unknown: false };
  }
  try {
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    return null;
  } catch (error) {
    return failureOf(error, false);
  }
}

port.on('message', () => port.postMessage(round()));
