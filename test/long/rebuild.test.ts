/**
 * A rebuild under the load of 16 writers, killed half way again and again, as real processes; and a
 * rebuild requested through a gateway, behind which a second projector waits for its turn.
 */
import { expect, test } from '@jest/globals';
import { describeUnless } from '../support/describe-driver.ts';
import { paymentsOfLog } from '../support/ledger-and-log.ts';
import { randomOf } from '../support/random.ts';
import type { Body } from '../support/service-client.ts';
import { payment, SECRET, signToken, token } from '../support/service-in-process.ts';
import {
  noThreeProcesses,
  runCliProcess,
  type Service,
  startService,
  startThreeProcesses,
} from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';
import { type Acknowledged, newWork, startWriters, type Work } from '../support/writers.ts';

const PLACE = '/ops/v1/projections';

type Progress = { event: string; data: { done: number; total: number; equal?: boolean } };

/** The events of a rebuild as they come; ends without a result when the service dies. */
async function* rebuildIn(service: Service): AsyncGenerator<Progress> {
  const response = await fetch(`${service.url}${PLACE}/rebuild`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await token('*', 'ops:admin')}`,
      accept: 'text/event-stream',
    },
  });
  if (!response.ok || response.body === null) throw new Error(`rebuild: ${await response.text()}`);
  let text = '';
  try {
    for await (const part of response.body.pipeThrough(new TextDecoderStream())) {
      text += part;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, event = '', data = '{}'] = /^event: (.+)\ndata: (.+)$/m.exec(block) ?? [];
        if (event !== '') yield { event, data: JSON.parse(data) };
      }
    }
  } catch {
    // The service died.
  }
}

/** Reads payments that were acknowledged, over and over: each is there, and never older. */
const readAlong = (work: Work, from: ReadonlyMap<string, Acknowledged>) => {
  let going = true;
  let reads = 0;
  const known = [...from.keys()];
  const reading = (async () => {
    while (going) {
      const paymentId = known[reads % known.length] ?? '';
      const before = work.acknowledged.get(paymentId) ?? from.get(paymentId);
      const { url, token } = work;
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${url}/api/v1/payments/${paymentId}`, { headers });
      expect(response.status).toBe(200);
      const then = JSON.parse(before?.body ?? '{}') as Body;
      const now = (await response.json()) as Body;
      expect(now.transactions.slice(0, then.transactions.length)).toEqual(then.transactions);
      reads += 1;
    }
    return reads;
  })();
  // Its failure is reported by `end`.
  reading.catch(() => undefined);
  return {
    end: () => {
      going = false;
      return reading;
    },
  };
};

const WRITERS = 16;
const KILLS = 5;
const OPERATIONS = 2_000;

test('rebuilds killed half way: reads go on from the old read models, and the next rebuild succeeds', async () => {
  const random = randomOf();
  using folder = temporaryFolder();
  const dataDir = folder.path;
  const kept = new Map<string, Acknowledged>();
  const start = () => startService({ dataDir, env: { LOG_LEVEL: 'warn', JWT_SECRET: SECRET } });
  let service = await start();
  const begin = async (more: number) => {
    const work = newWork(service, await token('m_demo'), random);
    const writing = startWriters(work, WRITERS);
    writing.catch(() => undefined);
    await until('there is something to rebuild', () => work.counts.taken >= more);
    return { work, writing };
  };
  const end = async ({ work, writing }: Awaited<ReturnType<typeof begin>>) => {
    service.kill('SIGKILL');
    await Promise.all([service.exited, writing]);
    for (const [paymentId, known] of work.acknowledged) kept.set(paymentId, known);
  };
  try {
    for (let kill = 0; kill < KILLS; kill += 1) {
      const begun = await begin(OPERATIONS);
      for await (const { event, data } of rebuildIn(service)) {
        expect(event).toBe('progress');
        if (data.done < data.total / 3) continue;
        expect(data.done).toBeLessThan(data.total);
        break;
      }
      await end(begun);
      service = await start();
    }
    const begun = await begin(50);
    const reading = readAlong(begun.work, new Map(begun.work.acknowledged));
    const progress: Progress[] = [];
    for await (const one of rebuildIn(service)) progress.push(one);
    expect(await reading.end()).toBeGreaterThan(0);
    expect(progress.at(-1)).toMatchObject({ event: 'result', data: { equal: true } });
    await end(begun);
    const booked = await paymentsOfLog(dataDir);
    for (const [paymentId, { body, touched }] of kept) {
      const now = booked.get(paymentId)?.body ?? 'not in the event store';
      if (touched) expect(JSON.parse(now).paymentId).toBe(paymentId);
      else expect(now).toBe(body);
    }
    expect(kept.size).toBeGreaterThan(OPERATIONS / 4);
  } finally {
    service.kill('SIGKILL');
    await service.exited;
  }
});

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
