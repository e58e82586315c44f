/** Opens the relay that the settings name: to Kafka, or none. Kafka's client is loaded only where it is used. */
import type { EventStore } from '../../shared/event-store/port.ts';
import type { Config } from '../../shared/runtime/config.ts';
import { TOPIC_PREFIX_DEFAULT } from '../../shared/runtime/settings.ts';
import type { Projector } from '../compose.ts';
import { noRelay } from '../event-feed/none.ts';
import type { Log } from '../subscription.ts';
import { fileDocument } from './checkpoint/file.ts';
import type { KeyDocument } from './checkpoint/port.ts';
import { type Relay, startRelay } from './relay.ts';

export type OpenRelay = {
  config: Pick<Config, 'kafka' | 'mongoUrl'>;
  store: Pick<EventStore, 'subscribe' | 'readStream' | 'head' | 'hashAt'>;
  /** The path of a file in the data folder; not called where the read models are in MongoDB. */
  fileOf(name: string): string;
  logger: Log;
  /** The relay runs in the process whose projector has the lease. */
  projector: Pick<Projector, 'status'>;
};

/** A document apart from the read models: after a wipe or a rebuild, no message is sent again. */
const openCheckpoint = async ({ config, fileOf }: OpenRelay): Promise<KeyDocument> => {
  if (config.mongoUrl === undefined) return fileDocument(fileOf('relay-checkpoint.json'));
  const { mongoKeyDocument } = await import('../../shared/read-models/mongodb/key-document.ts');
  return mongoKeyDocument({ url: config.mongoUrl, name: 'relay-checkpoint' });
};

/** Starts the relay. A broker or a MongoDB out of reach does not delay the start. */
export const openRelay = async (options: OpenRelay): Promise<Relay> => {
  const { config, store, logger, projector } = options;
  if (config.kafka === undefined) return noRelay();
  const { kafkaFeed } = await import('../event-feed/kafka.ts');
  return startRelay({
    store,
    feed: kafkaFeed(config.kafka),
    checkpoint: await openCheckpoint(options),
    logger,
    mayRun: () => projector.status().state !== 'standing-by',
  });
};

/** What the topics' names begin with, also where messages are only computed from the log. */
export const topicPrefixOf = ({ kafka }: Pick<Config, 'kafka'>): string =>
  kafka?.topicPrefix ?? TOPIC_PREFIX_DEFAULT;
