/** examples/consumer.ts reads 10,000 events of a broker, some of them sent twice. */
import { test } from '@jest/globals';
import { kafka } from '../../tools/engines/kafka.ts';
import { expectExampleToRead } from '../support/consumer-example.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = kafka.available();
const PAYMENTS = 1_700;

describeUnless(skip, 'examples/consumer.ts, 10,000 events', () => {
  test('counts each event once, over lost responses and a kill -9, and notices a gap', async () => {
    using folder = temporaryFolder();
    const { variables, pid } = await kafka.start(folder.path, () => undefined);
    try {
      await expectExampleToRead(variables.KAFKA_BROKERS ?? '', PAYMENTS, 'SIGKILL');
    } finally {
      process.kill(pid, 'SIGKILL');
    }
  });
});
