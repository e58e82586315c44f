/** A list of read models that are not filled from the log yet, or were emptied, is refused (gaps §28). */
import { StoreUnavailable } from '../event-store/errors.ts';
import type { EventStore } from '../event-store/port.ts';
import { ReadModelsUnavailable } from './errors.ts';
import type { ReadModels } from './port.ts';

/** Filled: to the log's end now, later to the seen one. A search of others throws ReadModelsUnavailable. */
export const searchedOnceFilled = (
  readModels: ReadModels,
  store: Pick<EventStore, 'end' | 'readAll'>,
): ReadModels => {
  let known = store.end();
  known.catch(() => undefined);

  const isFilled = async (): Promise<boolean> => {
    const checkpoint = await readModels.filledTo();
    try {
      known = known.catch(store.end);
      const end = await known;
      if (checkpoint === end) return true;
      if ((await store.readAll(checkpoint, 1, end)).length > 0) return false;
      known = Promise.resolve(checkpoint);
      return true;
    } catch (error) {
      // Without the event store, lists are what the read models hold.
      if (error instanceof StoreUnavailable) return checkpoint !== null;
      throw error;
    }
  };

  return {
    ...readModels,
    isFilled,
    search: async (...request) => {
      const [filled, page] = await Promise.all([isFilled(), readModels.search(...request)]);
      if (filled) return page;
      throw new ReadModelsUnavailable('the read models are being filled from the event log');
    },
  };
};
