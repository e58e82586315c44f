/** examples/consumer.ts against real messages of a real broker: KAFKA_BROKERS. */
import { expect, test } from '@jest/globals';
import { runExample } from '../support/consumer-example.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { expectWhole } from '../support/feed-checks.ts';
import { kafkaFeedDriver } from '../support/feed-drivers.ts';
import { LIFE } from '../support/many-payments.ts';

const skip = kafkaFeedDriver.skip;

describeUnless(skip, 'the example of a reader', () => {
  test('reads each event once, resumes where it was, and notices a gap', async () => {
    const brokers = String(process.env.KAFKA_BROKERS);
    const { events, read, restarts, gap } = await runExample(brokers, 20, 'SIGTERM', 120_000);
    expect(restarts).toBeGreaterThan(0);
    expect(read).toHaveLength(20 * LIFE);
    expectWhole(
      read.map(({ partition, event }) => ({ partition, value: JSON.stringify(event) })),
      events,
    );
    expect(gap).toEqual({ code: 3, said: expect.stringMatching(/is missing/) });
  }, 240_000);
});
