import { openKeyDocument } from '../shared/read-models/key-document.ts';
import type { Config } from '../shared/runtime/config.ts';
import { isTracing } from '../shared/runtime/tracing.ts';
import { RelayOff } from './errors.ts';
import { type Relay, type RelayOptions, startRelay } from './relay.ts';
import type { RelayStatus } from './status.ts';
import { tracedFeed } from './traces.ts';

type OpenRelay = Pick<RelayOptions, 'store' | 'logger'> & {
  config: Pick<Config, 'kafka' | 'mongoUrl'>;
  fileOf(name: string): string;
  /** False where another process has the projector's lease, which decides who relays. */
  mayRun(): boolean;
};

const counts = { published: 0, restarts: 0 };
const OFF: RelayStatus = { state: 'off', checkpoint: null, parked: 0, counts };

/** No checkpoint moves: a broker that is set later gets every event from the first one on. */
export const noRelay = (): Relay => ({
  status: () => OFF,
  lag: async () => undefined,
  partitions: () => undefined,
  parked: async () => ({}),
  retryParked: async () => {
    throw new RelayOff('no broker is set (KAFKA_BROKERS): nothing is sent, nothing is parked');
  },
  stop: async () => undefined,
});

/** A broker or a MongoDB out of reach does not delay the start. */
export const openRelay = async (options: OpenRelay): Promise<Relay> => {
  const { config, store, logger, mayRun } = options;
  if (config.kafka === undefined) return noRelay();
  const { kafkaFeed } = await import('./kafka/kafka.ts');
  const feed = kafkaFeed(config.kafka);
  return startRelay({
    store,
    feed: isTracing() ? tracedFeed(feed, config.kafka.topicPrefix) : feed,
    // Apart from the read models: after a wipe or a rebuild, no message is sent again.
    checkpoint: await openKeyDocument(options, 'relay-checkpoint'),
    logger,
    mayRun,
  });
};
