/** examples/consumer.ts against real messages of a real broker: KAFKA_BROKERS. */
import { test } from '@jest/globals';
import { expectExampleToRead } from '../support/consumer-example.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { kafkaFeedDriver } from '../support/feed-drivers.ts';

const skip = kafkaFeedDriver.skip;

describeUnless(skip, 'the example of a reader', () => {
  test('reads each event once, resumes where it was, and notices a gap', async () => {
    const brokers = String(process.env.KAFKA_BROKERS);
    await expectExampleToRead(brokers, 20, 'SIGTERM');
  });
});
