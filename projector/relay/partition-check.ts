/** Notices when the partition count of a topic was changed at the broker. */
import { type EventFeed, type Partitions, TOPICS } from '../event-feed/port.ts';
import { RelayHalted } from './errors.ts';

export type PartitionCheck = {
  /** The counts that the topics have now. Throws FeedUnavailable. */
  look(): Promise<Partitions>;
  /** Compares with the known counts, if the last look is too old. Throws RelayHalted and FeedUnavailable. */
  recheck(known: Partitions): Promise<void>;
};

/** Throws RelayHalted where a topic has another partition count than it had. */
export const rejectChange = (known: Partitions, found: Partitions): void => {
  for (const topic of TOPICS) {
    if (known[topic] === found[topic]) continue;
    throw new RelayHalted(
      `the ${topic} topic has ${found[topic]} partitions and had ${known[topic]}: payments would change their partition and lose their order; give the topic its old count back, or publish under another KAFKA_TOPIC_PREFIX`,
    );
  }
};

/** `everyMs` is the time between two looks while the relay runs. */
export const createPartitionCheck = (
  feed: Pick<EventFeed, 'partitions'>,
  everyMs: number,
): PartitionCheck => {
  let lookedAtMs = 0;
  const look = async (): Promise<Partitions> => {
    const found = await feed.partitions();
    lookedAtMs = performance.now();
    return found;
  };
  return {
    look,
    recheck: async (known) => {
      if (performance.now() - lookedAtMs > everyMs) rejectChange(known, await look());
    },
  };
};
