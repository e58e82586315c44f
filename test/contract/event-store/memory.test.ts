import { memoryEventStore } from '../../../shared/event-store/memory/event-store.ts';
import { describeEventStore } from './describe-event-store.ts';

describeEventStore({
  name: 'memory',
  connectionless: 'an object in the same process',
  partial:
    'the store of the tests neither checks events, nor opens again, nor has the form of a log',
  make: async () => {
    const store = memoryEventStore();
    return { open: async () => store, remove: async () => undefined };
  },
});
