/**
 * The next generation's file in another thread, which fills it without its indexes and without waiting
 * for the disk. A file that is not made whole in the end (make-whole.ts) is never served: its rebuild has
 * failed.
 */
import type { Position } from '../../event-store/port.ts';
import type { OpenGeneration } from '../port.ts';
import type { FillingArgs } from './next-generation.ts';
import { openSqliteReadModels } from './read-models.ts';

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
  const filled = openSqliteReadModels(filling);
  return of > 1 ? inShare(filled) : filled;
};
