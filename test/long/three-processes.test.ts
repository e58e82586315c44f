/**
 * Several processes and engines that fail under them: a read store that is stopped, wiped and restored
 * from an older copy, a projector that is killed.
 */
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import payment from '../../examples/payment.json' with { type: 'json' };
import { ferretdb } from '../../tools/engines/ferretdb.ts';
import { describeUnless } from '../support/describe-driver.ts';
import { freePort } from '../support/free-port.ts';
import { signToken } from '../support/in-process.ts';
import { metricOf } from '../support/service.ts';
import { startThreeProcesses, type ThreeProcesses } from '../support/three-processes.ts';
import { HANGS_MS } from '../support/time-bounds.ts';
import { until } from '../support/until.ts';

const PAYMENTS = '/api/v1/payments';
const missing = ferretdb.available();

type Reply = { status: number; text: string; json: Record<string, unknown> };

/** A merchant of a deployment; `base` may be the gateway or one of the processes. */
const merchantOf = async ({ env }: ThreeProcesses) => {
  const bearer = await signToken({ merchant_id: 'm_long', sub: 'tester' }, env.JWT_SECRET);
  const send = async (base: string, path: string, body?: object): Promise<Reply> => {
    const response = await fetch(`${base}${PAYMENTS}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(HANGS_MS),
    });
    const text = await response.text();
    return { status: response.status, text, json: text === '' ? {} : JSON.parse(text) };
  };
  return send;
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

/** P4: creates and refunds by halves; the GET that follows at once gives the same bytes. */
const load = (send: Send, base: string) => {
  let running = true;
  const seen = new Map<string, string>();
  const worker = async (): Promise<void> => {
    while (running) {
      const made = await send(base, '', sale(1000));
      if (made.status !== 200) throw new Error(`create: ${made.status} ${made.text}`);
      const id = String(made.json.paymentId);
      const half = await send(base, `/${id}/refund`, { refundAmount: 500 });
      if (half.status !== 200) throw new Error(`refund: ${half.status} ${half.text}`);
      const read = await send(base, `/${id}`);
      if (read.text !== half.text) throw new Error(`read ${read.status}: ${read.text}`);
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
  test('gaps §9: every payment reads as it was answered, over a read store stopped, frozen, wiped and restored from an older copy', async () => {
    await using store = await readStore();
    await using three = await startThreeProcesses({ MONGODB_URL: store.url });
    const [projector] = three.processes.projector;
    const send = await merchantOf(three);
    const work = load(send, three.url);
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
      expect((await send(three.url, `/${id}`)).text).toBe(body);
    }
  });

  test('ADR-0038: a second projector takes over within 10 s after the first is killed', async () => {
    await using store = await readStore();
    await using three = await startThreeProcesses({ MONGODB_URL: store.url });
    const second = await three.add('projector');
    const [first] = three.processes.projector;
    const stateOf = async (url: string) => (await healthOf(url)).engines.projection?.state;
    expect(await stateOf(second.url)).toBe('standing-by');
    const send = await merchantOf(three);
    await send(three.url, '', sale(1000));
    first?.kill('SIGKILL');
    await first?.exited;
    const killedAt = performance.now();
    const made = await send(three.url, '', sale(2000));
    expect(made.status).toBe(200);
    await until('the second runs', async () => (await stateOf(second.url)) === 'running');
    process.stderr.write(
      `second projector: took over after ${Math.round(performance.now() - killedAt)} ms\n`,
    );
    await caughtUp(second.url);
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
    const made = await send(three.url, '', sale(1000));
    expect(made.status).toBe(200);
    expect((await send(three.url, `/${made.json.paymentId}`)).text).toBe(made.text);
    await until(
      'health shows the relay',
      async () => (await healthOf(projector?.url ?? '')).engines.relay?.state === 'backing-off',
    );
  });
});
