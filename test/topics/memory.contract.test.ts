import { memoryFeedDriver } from '../support/feed-drivers.ts';
import { describeEventFeed } from './describe-event-feed.ts';

describeEventFeed(memoryFeedDriver);
