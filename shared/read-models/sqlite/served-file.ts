/** The read models' file while it is served; only a rebuild puts another in its place (ADR-0042). */
import { close, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { firstLineOf, orElse } from '../../runtime/error-text.ts';
import { codeOf, moveAllPages } from '../../runtime/sqlite.ts';
import { ReadModelsLost, ReadModelsUnavailable } from '../errors.ts';
import {
  type Connection,
  isUnusable,
  openConnection,
  removeLog,
  type SqliteReadModelsOptions,
  unavailable,
} from './connection.ts';

/** Keeps the file that a rename takes away: freeing the blocks of a large one takes 0.1 s. */
const keepOpen = (file: string): (() => void) => {
  const held = orElse(undefined, () => openSync(file, 'r'));
  return () => held && close(held, () => undefined);
};

/** Throws ReadModelsUnavailable where a part of the closed file is in its write-ahead log alone. */
const requireWhole = (file: string): void => {
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0)
    throw new ReadModelsUnavailable(
      'the write-ahead log of the read models is not in their file: the disk is full, or another process reads them',
    );
};

const SQLITE_CANTOPEN = 14;

type Listeners = {
  /** Another program has damaged or deleted the file. */
  onLost(reason: string): void;
  /** Another file has taken the place. */
  onReplaced(): void;
};

export const openServedFile = (
  options: SqliteReadModelsOptions,
  { onLost, onReplaced }: Listeners,
) => {
  const { file } = options;
  let at = openConnection(options);
  let closed = false;

  /** The disk may have been full, or no file descriptor left, when another file took the place. */
  const opened = (): Connection => {
    if (!closed && !at.db.isOpen) at = openConnection(options);
    return at;
  };

  /** The port's error for one of the file, here or in a thread; tells of a file that is lost. */
  const failed = (error: unknown): unknown => {
    const isGone = codeOf(error) % 256 === SQLITE_CANTOPEN && !existsSync(file);
    if (!isUnusable(error) && !isGone) return unavailable(error);
    const reason = firstLineOf(error);
    onLost(reason);
    return new ReadModelsLost(`the file of the read models is damaged or gone: ${reason}`);
  };

  /** Throws ReadModelsUnavailable where the file cannot be used. */
  const run = <T>(step: (at: Connection) => T): T => {
    try {
      return step(opened());
    } catch (error) {
      throw failed(error);
    }
  };

  /** In one turn of the event loop, so that no reader finds the file missing. */
  const replace = (next: string): void => {
    let letGo = (): void => undefined;
    try {
      requireWhole(next);
      // The close alone moves the log only where no other process has the file open. No wait for readers.
      moveAllPages(at.db);
      at.db.close();
      requireWhole(file);
      letGo = keepOpen(file);
      // A crash leaves the old file or the new one, each of them whole.
      renameSync(next, file);
      // The log of the old file, which another process keeps there, would be laid over the new one.
      removeLog(file);
    } finally {
      if (at.db.isOpen) at.db.close();
      onReplaced();
      at = openConnection(options);
      letGo();
    }
  };

  return {
    run,
    failed,
    /** Throws ReadModelsUnavailable, also where the new file cannot be opened: the next step opens it. */
    replaceBy: (next: string): void => run(() => replace(next)),
    isOpen: (): boolean => !closed,
    close: (): void => {
      closed = true;
      if (at.db.isOpen) at.db.close();
    },
  };
};
export type ServedFile = ReturnType<typeof openServedFile>;
