/**
 * The next generation's file in another thread, which fills it without its indexes and without waiting
 * for the disk. A file that is not whole in the end is never served: its rebuild has failed.
 */
import { DatabaseSync } from 'node:sqlite';
import type { Position } from '../../event-store/port.ts';
import type { OpenGeneration } from '../port.ts';
import type { FillingArgs } from './next-generation.ts';
import { openSqliteReadModels } from './read-models.ts';
import { INDEXES } from './schema.ts';

/** All of it is on disk afterwards: a rename puts it in the place of a file that is. */
const makeWhole = (file: string): void => {
  const db = new DatabaseSync(file);
  try {
    // The rows of an index are sorted within the cache where they fit into it.
    db.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536');
    db.exec(`BEGIN IMMEDIATE; ${INDEXES} COMMIT; PRAGMA journal_mode = WAL`);
  } finally {
    db.close();
  }
};

/** So long one thread waits at most until another has written its page. */
const WAIT_MS_MAX = 60_000;

type Opened = ReturnType<OpenGeneration>;

/** Writes documents and no checkpoint: the one of the file stays null until all shares have ended. */
const inShare = ({ apply, ...readModels }: Opened): Opened => {
  let at: Position | null = null;
  return {
    ...readModels,
    checkpoint: async () => at,
    apply: async (changes, _from, to) => {
      await apply(changes, null, null);
      at = to;
    },
  };
};

/** See OpenGeneration. What comes after the first filling is little, and is written as to a served file. */
export const open: OpenGeneration = (args, { of } = { of: 1 }) => {
  const { file, secrets, isEmpty } = args as FillingArgs;
  if (!isEmpty) return openSqliteReadModels({ file, secrets });
  const filling = { file, secrets, isFilling: true, timeoutMs: WAIT_MS_MAX } as const;
  if (of > 1) return inShare(openSqliteReadModels(filling));
  const { close, ...readModels } = openSqliteReadModels(filling);
  return {
    ...readModels,
    close: async () => {
      await close();
      // seeded bug: filled-made-whole
      makeWhole(file);
    },
  };
};
