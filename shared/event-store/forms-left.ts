/** The stored forms of a stream for who shows or checks what is left of it, and never decides on it. */
import { StreamNotWhole } from './errors.ts';
import type { StoredForm, StoredForms } from './port.ts';

/**
 * Empty also for a stream that was deleted at the server, or of which every event was cut: the log still
 * shows its events until a scavenge, and who reads the log goes on (docs/eventstoredb.md). Throws StoreUnavailable.
 */
export const formsLeft = async (
  { readStream }: Pick<StoredForms, 'readStream'>,
  stream: string,
): Promise<StoredForm[]> => {
  try {
    return await readStream(stream);
  } catch (error) {
    if (error instanceof StreamNotWhole) return [];
    throw error;
  }
};
