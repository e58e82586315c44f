/** The checkpoint in the hands of one relay. */
import type { Partitions } from '../../event-feed/port.ts';
import {
  checkpointAtStart,
  type KeyDocument,
  parseCheckpoint,
  type RelayCheckpoint,
} from './port.ts';

export type Place = ReturnType<typeof openPlace>;

/** The relay's place: every save is rejected once another relay has saved. */
export const openPlace = (document: KeyDocument) => {
  let version = 0;
  let checkpoint: RelayCheckpoint | undefined;
  const save = async (next: RelayCheckpoint): Promise<boolean> => {
    if (!(await document.save(JSON.stringify(next), version))) return false;
    version += 1;
    checkpoint = next;
    return true;
  };
  return {
    /** Undefined until it is taken. */
    now: () => checkpoint,
    /** Throws before it is taken. */
    taken: (): RelayCheckpoint => {
      if (checkpoint === undefined) throw new Error('the relay has not started');
      return checkpoint;
    },
    /** False where another relay has saved since. */
    save,
    /** Reads it, or makes it, and saves it once: from here on an older relay cannot. */
    take: async (partitions: Partitions): Promise<RelayCheckpoint | undefined> => {
      const stored = await document.load();
      version = stored?.version ?? 0;
      const taken =
        stored === undefined ? checkpointAtStart(partitions) : parseCheckpoint(stored.text);
      return (await save(taken)) ? taken : undefined;
    },
  };
};
