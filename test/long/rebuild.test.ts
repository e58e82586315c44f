/** A rebuild requested through a gateway, behind which a second projector waits for its turn. */
import { expect, test } from '@jest/globals';
import { describeUnless } from '../support/describe-driver.ts';
import { payment, signToken } from '../support/service-in-process.ts';
import {
  noThreeProcesses,
  runCliProcess,
  startThreeProcesses,
} from '../support/service-processes.ts';

const missing = noThreeProcesses();

describeUnless(missing, 'three processes', () => {
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
  });
});
