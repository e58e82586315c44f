/**
 * Several processes and engines that fail under them: a read store that is stopped, wiped and restored
 * from an older copy, a broker that is away.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { personalGroup } from '../../shared/payment/fields.ts';
import { ferretdb } from '../../tools/engines/ferretdb.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { freePort } from '../support/free-port.ts';
import { metricOf } from '../support/service-client.ts';
import { signToken } from '../support/service-in-process.ts';
import {
  noThreeProcesses,
  runCliProcess,
  startThreeProcesses,
  type ThreeProcesses,
} from '../support/service-processes.ts';
import { until } from '../support/until.ts';
import { request } from '../support/webhook-merchant.ts';

const PAYMENTS = '/api/v1/payments';
const missing = ferretdb.available();

/** A merchant of a deployment: a create or a change, and a GET where there is no body. */
const merchantOf = async ({ url, env }: ThreeProcesses) => {
  const token = await signToken({ merchant_id: 'm_long', sub: 'tester' }, env.JWT_SECRET);
  return (path: string, body?: object) =>
    request({ url, token }, body === undefined ? 'GET' : 'POST', `${PAYMENTS}${path}`, body);
};
type Send = Awaited<ReturnType<typeof merchantOf>>;

/** A server of the read models that can be stopped, frozen, emptied and restored. */
const readStore = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'payments-read-store-'));
  const data = join(folder, 'data');
  const copy = join(folder, 'copy');
  let { variables, pid } = await ferretdb.start(data, () => undefined);
  const stop = async (): Promise<void> => {
    process.kill(pid, 'SIGKILL');
    await until('the read store is gone', () => !existsSync(`/proc/${pid}`));
  };
  const start = async (): Promise<void> => {
    ({ variables, pid } = await ferretdb.start(data, () => undefined));
  };
  return {
    url: variables.MONGODB_URL ?? '',
    stop,
    start,
    keepCopy: async () => {
      await stop();
      cpSync(data, copy, { recursive: true });
      await start();
    },
    restoreCopy: () => {
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
    },
    /** Deletes its data; the file with its address stays. */
    wipe: () => rmSync(join(data, 'data'), { recursive: true }),
    freeze: () => void process.kill(pid, 'SIGSTOP'),
    thaw: () => void process.kill(pid, 'SIGCONT'),
    [Symbol.asyncDispose]: async () => {
      process.kill(pid, 'SIGCONT');
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const sale = (amount: number) => ({ ...payment, amount, captureNow: true });

/** The keys of names are in the same server: while it is away, and for good where it is wiped, none is shown. */
const withoutNames = (text: string): object => {
  const { personalData: _, paymentMethod: __, productItems: ___, ...body } = JSON.parse(text);
  for (const name of Object.keys(personalGroup.shape)) delete body[name];
  return body;
};

/** P4: creates and refunds by halves; the GET that follows at once gives the same. */
const load = (send: Send) => {
  let running = true;
  const seen = new Map<string, string>();
  const worker = async (): Promise<void> => {
    while (running) {
      const made = await send('', sale(1000));
      if (made.status !== 200) throw new Error(`create: ${made.status} ${made.text}`);
      const id = String(made.json.paymentId);
      const half = await send(`/${id}/refund`, { refundAmount: 500 });
      if (half.status !== 200) throw new Error(`refund: ${half.status} ${half.text}`);
      const read = await send(`/${id}`);
      expect([read.status, withoutNames(read.text)]).toEqual([200, withoutNames(half.text)]);
      seen.set(id, half.text);
    }
  };
  const workers = Promise.all(Array.from({ length: 4 }, worker));
  // `end` reports the failure of a worker.
  workers.catch(() => undefined);
  return {
    seen,
    atLeast: (more: number) => {
      const aim = seen.size + more;
      return until(`${more} more payments`, () => seen.size >= aim);
    },
    end: async () => {
      running = false;
      await workers;
    },
  };
};

type Health = { engines: Record<string, Record<string, unknown>> };
const healthOf = async (url: string): Promise<Health> =>
  (await fetch(`${url}/health/ready`)).json() as Promise<Health>;

const caughtUp = (url: string): Promise<void> =>
  until(
    'the projector has caught up',
    async () => (await metricOf({ url }, 'payments_projection_lag_events')) === 0,
  );

describeUnless(missing, 'three processes', () => {
  test('gaps §9: every payment reads as it was answered but for its names, over a read store stopped, frozen, wiped and restored from an older copy', async () => {
    await using store = await readStore();
    await using three = await startThreeProcesses({ MONGODB_URL: store.url });
    const [projector] = three.processes.projector;
    const send = await merchantOf(three);
    const work = load(send);
    await work.atLeast(20);
    await store.keepCopy();
    await work.atLeast(20);
    await store.stop();
    await work.atLeast(10);
    store.restoreCopy();
    await store.start();
    await work.atLeast(20);
    store.freeze();
    await work.atLeast(5);
    store.thaw();
    await work.atLeast(20);
    await store.stop();
    store.wipe();
    await store.start();
    await work.atLeast(20);
    await work.end();
    await caughtUp(projector?.url ?? '');
    for (const [id, body] of work.seen) {
      expect(withoutNames((await send(`/${id}`)).text)).toEqual(withoutNames(body));
    }
  });

  test('V3: a broker that is out of reach stops neither commands nor reads, and health names it', async () => {
    await using store = await readStore();
    const broker = `127.0.0.1:${await freePort()}`;
    await using three = await startThreeProcesses({
      MONGODB_URL: store.url,
      KAFKA_BROKERS: broker,
    });
    const [projector] = three.processes.projector;
    const send = await merchantOf(three);
    const made = await send('', sale(1000));
    expect(made.status).toBe(200);
    expect((await send(`/${made.json.paymentId}`)).text).toBe(made.text);
    await until(
      'health shows the relay',
      async () => (await healthOf(projector?.url ?? '')).engines.relay?.state === 'backing-off',
    );
  });
});

describeUnless(noThreeProcesses(), 'a second projector behind the gateway', () => {
  test('`payments projections rebuild` succeeds whichever projector it is sent to', async () => {
    await using three = await startThreeProcesses();
    await three.add('projector');
    const send = await merchantOf(three);
    for (let n = 0; n < 20; n += 1) expect((await send('', sale(1000))).status).toBe(200);
    const env = { PAYMENTS_URL: three.url, JWT_SECRET: three.env.JWT_SECRET };
    for (let round = 0; round < 3; round += 1) {
      const rebuilt = await runCliProcess(['projections', 'rebuild', '--yes'], env);
      expect(rebuilt).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(/ 20 documents\nchecksum old = new: /),
        stderr: expect.stringMatching(/^rebuild 100% /),
      });
    }
  });
});
