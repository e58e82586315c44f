/**
 * A rebuild under the load of 16 writers, killed half way again and again, as real processes; and a
 * rebuild requested through a gateway, behind which a second projector waits for its turn.
 */
import { describe, expect, test } from '@jest/globals';
import { payment, signToken } from '../support/in-process.ts';
import { surviveRebuilds } from '../support/rebuild-rounds.ts';
import { runCliProcess } from '../support/service.ts';
import { noThreeProcesses, startThreeProcesses } from '../support/three-processes.ts';

test('rebuilds killed half way: reads go on from the old read models, and the next rebuild succeeds', async () => {
  const rounds = { writers: 16, kills: 5, operations: 2_000 };
  await expect(surviveRebuilds(rounds)).resolves.toBeUndefined();
}, 300_000);

const missing = noThreeProcesses();
const about = missing === undefined ? describe : describe.skip;

about(`three processes${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('`payments projections rebuild` succeeds whichever projector the gateway sends it to', async () => {
    await using three = await startThreeProcesses();
    await three.add('projector');
    const { JWT_SECRET = '' } = three.env;
    const bearer = await signToken({ merchant_id: 'm_long', sub: 'tester' }, JWT_SECRET);
    for (let n = 0; n < 20; n += 1) {
      const { status } = await fetch(`${three.url}/api/v1/payments`, {
        method: 'POST',
        headers: { authorization: `Bearer ${bearer}` },
        body: JSON.stringify(payment()),
      });
      expect(status).toBe(200);
    }
    for (let round = 0; round < 3; round += 1) {
      const { code, stdout, stderr } = await runCliProcess(['projections', 'rebuild', '--yes'], {
        PAYMENTS_URL: three.url,
        JWT_SECRET,
      });
      expect([code, stdout, stderr]).toEqual([
        0,
        expect.stringMatching(/ 20 documents\nchecksum old = new: /),
        expect.stringMatching(/^rebuild 100% /),
      ]);
    }
  }, 120_000);
});
