/** The read models' file while running: replaced when damaged or deleted, and after a rebuild. */
import { close, openSync, renameSync, statSync } from 'node:fs';
import { firstLineOf } from '../../runtime/error-text.ts';
import { isDamage, moveAllPages } from '../../runtime/sqlite.ts';
import { ReadModelsUnavailable } from '../errors.ts';
import {
  type Connection,
  openConnection,
  removeFile,
  removeLog,
  type SqliteReadModelsOptions,
  unavailable,
} from './connection.ts';
import type { Checkpoints } from './file-threads.ts';

/** Keeps the file that a rename takes away: freeing the blocks of a large one takes 0.1 s. */
const keepOpen = (file: string): (() => void) => {
  try {
    const held = openSync(file, 'r');
    return () => close(held, () => undefined);
  } catch {
    return () => undefined;
  }
};

/** Throws ReadModelsUnavailable where a part of the closed file is in its write-ahead log alone. */
const requireWhole = (file: string): void => {
  const log = statSync(`${file}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0)
    throw new ReadModelsUnavailable(
      'the write-ahead log of the read models is not in their file: the disk is full, or another process reads them',
    );
};

/** `onReplaced` is called whenever another file takes its place. */
export const openReplaceableFile = (
  options: SqliteReadModelsOptions,
  { underWay }: Pick<Checkpoints, 'underWay'>,
  onReplaced: () => void,
) => {
  let at = openConnection(options);
  let closed = false;

  /** The disk may have been full, or no file descriptor left, when another file took the place. */
  const opened = (): Connection => {
    if (!closed && !at.db.isOpen) at = openConnection(options);
    return at;
  };

  /** Deleted from outside: this connection still has the file, and those of searches cannot open it. */
  const isDeleted = (): boolean => {
    try {
      return at.db.isOpen && statSync(options.file, { throwIfNoEntry: false }) === undefined;
    } catch {
      return false;
    }
  };

  const replaceLost = (error: unknown): void => {
    options.logger?.warn(
      { file: options.file, reason: firstLineOf(error) },
      'read models are damaged or gone',
    );
    at.db.close();
    onReplaced();
    removeFile(options.file);
    at = openConnection(options);
  };

  /** Throws ReadModelsUnavailable where the file cannot be used; then an empty one replaces it. */
  const run = <T>(step: (at: Connection) => T): T => {
    try {
      return step(opened());
    } catch (error) {
      const isLost = isDamage(error) || isDeleted();
      // A checkpoint could move the log of the new file into the one that is gone: the next step replaces it.
      if (isLost && underWay() === undefined) replaceLost(error);
      throw unavailable(error);
    }
  };

  /** In one turn of the event loop, so that no reader finds the file missing. */
  const replace = (file: string): void => {
    let letGo = (): void => undefined;
    try {
      requireWhole(file);
      // The close alone moves the log only where no other process has the file open. No wait for readers.
      moveAllPages(at.db);
      at.db.close();
      requireWhole(options.file);
      letGo = keepOpen(options.file);
      // A crash leaves the old file or the new one, each of them whole.
      renameSync(file, options.file);
      // The log of the old file, which another process keeps there, would be laid over the new one.
      removeLog(options.file);
    } finally {
      if (at.db.isOpen) at.db.close();
      onReplaced();
      at = openConnection(options);
      letGo();
    }
  };

  return {
    run,
    /** Throws ReadModelsUnavailable, also where the new file cannot be opened: the next step opens it. */
    replaceBy: (file: string): void => run(() => replace(file)),
    isOpen: (): boolean => !closed,
    close: (): void => {
      closed = true;
      if (at.db.isOpen) at.db.close();
    },
  };
};
export type ReplaceableFile = ReturnType<typeof openReplaceableFile>;
