import { memoryEventStore } from '../support/memory-event-store.ts';
import { describeEventStore } from './describe-event-store.ts';

describeEventStore({
  name: 'memory',
  connectionless: 'the store is an object in the same process',
  undeletable: 'the store is an object in the same process',
  make: async () => {
    const store = memoryEventStore();
    const open = async () => {
      store.reopen();
      return store;
    };
    return { open, remove: async () => undefined };
  },
});
