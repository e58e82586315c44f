/**
 * Webhooks of several processes: command APIs, query APIs and two projectors over EventStoreDB (or
 * its stand-in), MongoDB and, where there is one, Kafka. Leaders are killed and frozen meanwhile.
 */
import { describe, expect, test } from '@jest/globals';
import { signToken } from '../support/in-process.ts';
import type { ServiceProcess } from '../support/service.ts';
import { noThreeProcesses, startThreeProcesses } from '../support/three-processes.ts';
import { until } from '../support/until.ts';
import {
  ALLOW_LOOPBACK,
  allMessages,
  byPayment,
  firstOfEach,
  type Merchant,
  register,
  saleAndRefund,
} from '../support/webhook-merchant.ts';
import { startReceiver } from '../support/webhook-receiver.ts';

const missing = noThreeProcesses();
const about = missing === undefined ? describe : describe.skip;

/** The state of the deliverer of a process; undefined where it does not respond. */
const deliverer = async ({ url }: ServiceProcess): Promise<string | undefined> => {
  try {
    const response = await fetch(`${url}/health/ready`, { signal: AbortSignal.timeout(1_000) });
    const { engines } = (await response.json()) as { engines: Record<string, { state: string }> };
    return engines.webhooks?.state;
  } catch {
    return undefined;
  }
};

const untilState = (one: ServiceProcess, state: string): Promise<void> =>
  until(`its deliverer is ${state}`, async () => (await deliverer(one)) === state, 30_000);

about(`several processes${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  test('what the command API accepts arrives signed, and neither a killed nor a frozen leader loses any', async () => {
    await using receiver = await startReceiver();
    await using three = await startThreeProcesses(ALLOW_LOOPBACK);
    const [first] = three.processes.projector as [ServiceProcess];
    const token = await signToken(
      { merchant_id: 'm_several', sub: 'tester' },
      three.env.JWT_SECRET ?? '',
    );
    const merchant: Merchant = { url: three.url, token };
    const { secret } = await register(merchant, receiver.url);
    const arrived = () => new Set(receiver.received.map(({ id }) => id)).size;
    let payments = 0;
    const pay = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1) await saleAndRefund(merchant);
      payments += count;
    };
    const untilArrived = (what: string): Promise<void> =>
      until(`${what}: ${payments * 2} messages`, () => arrived() >= payments * 2, 90_000);

    await pay(5);
    await untilArrived('from the first leader');

    const second = await three.add('projector');
    await untilState(second, 'standing-by');
    const paying = pay(10);
    first.kill('SIGKILL');
    await paying;
    await untilArrived('after the first leader was killed');
    expect(await deliverer(second)).toBe('running');

    const third = await three.add('projector');
    await untilState(third, 'standing-by');
    const beforeFreeze = receiver.received.length;
    const payingOn = pay(10);
    second.kill('SIGSTOP');
    await payingOn;
    await untilArrived('while the second leader was frozen');
    expect(await deliverer(third)).toBe('running');
    second.kill('SIGCONT');
    await pay(5);
    await untilArrived('after it came back');
    await untilState(second, 'standing-by');
    expect(await deliverer(third)).toBe('running');

    const messages = await allMessages(merchant);
    expect(messages).toHaveLength(payments * 2);
    expect(byPayment(firstOfEach(receiver.received, secret))).toEqual(byPayment(messages));
    // Sent again is at most what was on its way or waited for its save at each change of the leader.
    const repeats = receiver.received.length - messages.length;
    process.stderr.write(
      `webhooks of several processes: ${messages.length} messages, ${repeats} sent once more, ${beforeFreeze} before the frozen leader\n`,
    );
    expect(repeats).toBeLessThanOrEqual(2 * (16 + 4));
  }, 300_000);
});
