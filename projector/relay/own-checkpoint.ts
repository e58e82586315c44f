/** The checkpoint as one relay has taken it: a save fails once another relay has saved. */
import type { Partitions } from '../event-feed/port.ts';
import type { KeyDocument } from '../key-document/port.ts';
import { checkpointAtStart, parseCheckpoint, type RelayCheckpoint } from './checkpoint.ts';

export type OwnCheckpoint = {
  /** The last checkpoint taken or saved; undefined before `take`. */
  peek(): RelayCheckpoint | undefined;
  /** The stored one, of whichever relay; undefined before the first. Throws as `take` does. */
  read(): Promise<RelayCheckpoint | undefined>;
  /** The same. Throws Error before `take`. */
  value(): RelayCheckpoint;
  /** False, and nothing changed, where another relay has saved since. Throws what the document throws. */
  save(next: RelayCheckpoint): Promise<boolean>;
  /**
   * Reads the checkpoint, or makes the first one, and saves it once: from then on every older relay
   * fails to save. Undefined where another relay saved meanwhile. Throws Error when it is damaged.
   */
  take(partitions: Partitions): Promise<RelayCheckpoint | undefined>;
};

/** Opens the checkpoint in a document; nothing is read before `take`. */
export const openOwnCheckpoint = (document: KeyDocument): OwnCheckpoint => {
  let version = 0;
  let checkpoint: RelayCheckpoint | undefined;

  const save = async (next: RelayCheckpoint): Promise<boolean> => {
    if (!(await document.save(JSON.stringify(next), version))) return false;
    version += 1;
    checkpoint = next;
    return true;
  };

  return {
    peek: () => checkpoint,
    read: async () => {
      const stored = await document.load();
      return stored && parseCheckpoint(stored.text);
    },
    value: () => {
      if (checkpoint === undefined) throw new Error('the relay has not started');
      return checkpoint;
    },
    save,
    take: async (partitions) => {
      const stored = await document.load();
      version = stored?.version ?? 0;
      const taken =
        stored === undefined
          ? checkpointAtStart(partitions)
          : parseCheckpoint(stored.text, partitions.seals);
      return (await save(taken)) ? taken : undefined;
    },
  };
};
