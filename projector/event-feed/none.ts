/**
 * The relay without a broker: nothing is sent and no checkpoint moves, so a broker that is set later
 * gets every event from the first one on. The same messages can be read from the log
 * (relay/topic-reader.ts).
 */
import { RelayNotReady } from '../relay/errors.ts';
import type { Relay } from '../relay/relay.ts';

/** A relay that is off. */
export const noRelay = (): Relay => ({
  status: () => ({
    state: 'off',
    checkpoint: null,
    parked: 0,
    counts: { published: 0, restarts: 0 },
  }),
  lag: async () => undefined,
  partitions: () => undefined,
  parked: async () => ({}),
  retryParked: async () => {
    throw new RelayNotReady('no broker is set (KAFKA_BROKERS): nothing is sent, nothing is parked');
  },
  stop: async () => undefined,
});
