import { memoryFeedDriver } from '../support/feed-drivers.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { describeRelayRetry } from './describe-relay-retry.ts';

describeRelayRetry({
  ...memoryFeedDriver,
  document: () => {
    const document = memoryDocument();
    return () => document;
  },
});
