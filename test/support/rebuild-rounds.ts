/**
 * A rebuild of the read models in a running service while merchants write: killed half way, and
 * run again to its end. Reads go on throughout, and nothing acknowledged is lost.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from '@jest/globals';
import { SECRET, token } from './in-process.ts';
import { paymentsOfLog } from './ledger-and-log.ts';
import { newSeed, randomOf } from './random.ts';
import { type Body, type Service, startService } from './service.ts';
import { until } from './until.ts';
import { type Acknowledged, startWriters, type Work } from './writers.ts';

const PLACE = '/ops/v1/projections';
const WAIT_MS_MAX = 60_000;

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
      const { url, token } = work.line;
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

export type RebuildRounds = { writers: number; kills: number; operations: number };

/** Writes, kills a rebuild `kills` times half way, runs one to its end, and reads ledger and log. */
export const surviveRebuilds = async (rounds: RebuildRounds): Promise<void> => {
  const { writers, kills, operations } = rounds;
  const random = randomOf(newSeed());
  const dataDir = mkdtempSync(join(tmpdir(), 'payments-rebuild-'));
  const kept = new Map<string, Acknowledged>();
  const start = () => startService({ dataDir, env: { LOG_LEVEL: 'warn', JWT_SECRET: SECRET } });
  let service = await start();
  const begin = async (more: number) => {
    const line = { url: service.url, token: await token('m_demo') };
    const work: Work = { line, random, acknowledged: new Map(), operations: 0 };
    const writing = startWriters(work, writers);
    writing.catch(() => undefined);
    await until('there is something to rebuild', () => work.operations >= more, WAIT_MS_MAX);
    return { work, writing };
  };
  const end = async ({ work, writing }: Awaited<ReturnType<typeof begin>>) => {
    service.kill('SIGKILL');
    await Promise.all([service.exited, writing]);
    for (const [paymentId, known] of work.acknowledged) kept.set(paymentId, known);
  };
  try {
    for (let kill = 0; kill < kills; kill += 1) {
      const begun = await begin(operations);
      for await (const { event, data } of rebuildIn(service)) {
        expect(event).toBe('progress');
        if (data.done < data.total / 3) continue;
        expect(data.done).toBeLessThan(data.total);
        break;
      }
      await end(begun);
      service = await start();
    }
    const begun = await begin(Math.min(operations, 50));
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
    expect(kept.size).toBeGreaterThan(operations / 4);
  } finally {
    service.kill('SIGKILL');
    await service.exited;
    rmSync(dataDir, { recursive: true, force: true });
  }
};
