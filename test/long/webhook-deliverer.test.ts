/** The deliverer in the test's own process: what takes too long for each day. */
import { expect, test } from '@jest/globals';
import { surviveDelivererKills } from '../support/webhook-kills.ts';

test('950 deaths around send and save lose nothing and turn nothing round', async () => {
  const { seed, messages, repeats } = await surviveDelivererKills(950);
  process.stderr.write(
    `webhooks: seed ${seed}, 950 deaths, ${messages} messages, ${repeats} requests more than messages\n`,
  );
  expect(messages).toBeGreaterThan(950);
}, 600_000);
