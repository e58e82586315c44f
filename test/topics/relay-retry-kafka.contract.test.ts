import { kafkaFeedDriver } from '../support/feed-drivers.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { describeRelayRetry } from './describe-relay-retry.ts';

describeRelayRetry({
  ...kafkaFeedDriver,
  document: () => {
    const document = memoryDocument();
    return () => document;
  },
});
