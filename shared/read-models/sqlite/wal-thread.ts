/**
 * The thread that moves the write-ahead log of the read models into their file: see wal-moves.ts. Each
 * message asks for one round, and is replied to when that has ended, however it went: what was not moved
 * is moved by the next one, and damage is found by whoever reads the page.
 */
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { GATE, type WalThreadData } from './wal-moves.ts';

const port = parentPort;
if (port === null) throw new Error('wal-thread.ts runs as a worker thread only');
const { file, gate } = workerData as WalThreadData;
/** A file that is gone is not made again. */
const address = `${pathToFileURL(file).href}?mode=rw`;

const move = (): void => {
  const database = new DatabaseSync(address, { timeout: 0 });
  try {
    database.exec('PRAGMA synchronous = NORMAL; PRAGMA trusted_schema = OFF');
    database.exec('PRAGMA wal_checkpoint(PASSIVE)');
  } finally {
    database.close();
  }
};

port.on('message', () => {
  if (Atomics.compareExchange(gate, 0, GATE.free, GATE.moving) === GATE.free) {
    try {
      move();
    } catch {
      // A full disk, a damaged or a missing file: whoever writes next meets it and says so.
    } finally {
      Atomics.store(gate, 0, GATE.free);
      Atomics.notify(gate, 0);
    }
  }
  port.postMessage(null);
});
