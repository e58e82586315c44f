/** examples/consumer.ts reads each event of a real broker once, some of them sent twice. */
import { test } from '@jest/globals';
import { kafka } from '../../tools/engines/kafka.ts';
import { expectExampleToRead } from '../support/consumer-example.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { kafkaFeedDriver } from '../support/feed-drivers.ts';
import { testOfLongRun } from '../support/long-run-share.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describeUnless(kafkaFeedDriver.skip, 'the example of a reader', () => {
  test('reads each event once, resumes where it was, and notices a gap', async () => {
    const brokers = String(process.env.KAFKA_BROKERS);
    await expectExampleToRead(brokers, 20, 'SIGTERM');
  });
});

describeUnless(kafka.available(), 'the example of a reader, 10,000 events', () => {
  testOfLongRun('counts each once, over lost responses and a kill -9', async () => {
    using folder = temporaryFolder();
    const { variables, pid } = await kafka.start(folder.path, () => undefined);
    try {
      await expectExampleToRead(variables.KAFKA_BROKERS ?? '', 1_700, 'SIGKILL');
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  });
});
