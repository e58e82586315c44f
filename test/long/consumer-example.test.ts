/** examples/consumer.ts reads 10,000 events of a broker, some of them sent twice. */
import { expect, test } from '@jest/globals';
import { kafka } from '../../tools/engines/kafka.ts';
import { runExample } from '../support/consumer-example.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { expectWhole } from '../support/feed-checks.ts';
import { LIFE } from '../support/many-payments.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = kafka.available();
const PAYMENTS = 1_700;

describeUnless(skip, 'examples/consumer.ts, 10,000 events', () => {
  test('counts each event once, over lost responses and a kill -9, and notices a gap', async () => {
    const folder = temporaryFolder();
    const { variables, pid } = await kafka.start(folder.path, () => undefined);
    try {
      const { events, read, restarts, gap } = await runExample(
        variables.KAFKA_BROKERS ?? '',
        PAYMENTS,
        'SIGKILL',
        150_000,
      );
      expect(restarts).toBeGreaterThan(0);
      expect(read).toHaveLength(PAYMENTS * LIFE);
      expectWhole(
        read.map(({ partition, event }) => ({ partition, value: JSON.stringify(event) })),
        events,
      );
      expect(gap).toEqual({ code: 3, said: expect.stringMatching(/is missing/) });
    } finally {
      process.kill(pid, 'SIGKILL');
      folder.remove();
    }
  }, 600_000);
});
