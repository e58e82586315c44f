/**
 * P4, gaps §9: a merchant can read a payment from the moment of its response on, also after `kill -9`,
 * and when the read models are gone.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../shared/event-store/sqlite/event-store.ts';
import { appendLives } from '../support/many-payments.ts';
import { randomOf } from '../support/random.ts';
import {
  noPairs,
  type PairLine,
  type Pairs,
  readAgain,
  writePairs,
} from '../support/read-your-writes.ts';
import { PAYMENTS, SECRET, token } from '../support/service-in-process.ts';
import { startService } from '../support/service-processes.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const WRITERS = 16;
const PAIRS = 1000;

const report = (what: string, pairs: Pairs, more: string): void => {
  process.stderr.write(
    `read your writes, ${what}: ${pairs.compared} pairs, ${more}, ` +
      `${pairs.wrong.length} missing or older\n`,
  );
};

const lineTo = (url: string, bearer: string): PairLine => {
  const send = async (path: string, init: RequestInit) => {
    try {
      const headers = { authorization: `Bearer ${bearer}` };
      const response = await fetch(`${url}${PAYMENTS}${path}`, { ...init, headers });
      return { status: response.status, text: await response.text() };
    } catch {
      return undefined;
    }
  };
  return {
    post: (path, body) => send(path, { method: 'POST', body: JSON.stringify(body) }),
    get: (paymentId) => send(`/${paymentId}`, {}),
  };
};

/** Other merchants' payments, earlier in the log: a projector that begins anew reaches ours late. */
const OTHERS = 2000;
const fillWithOthers = async (dataDir: string): Promise<void> => {
  const store = await openSqliteEventStore({ file: join(dataDir, 'events.sqlite') });
  await appendLives(
    store,
    Array.from({ length: OTHERS }, (_, n) => `pay_other_${n}`),
  );
  await store.close();
};

const deleteReadModels = (dataDir: string): void => {
  for (const suffix of ['', '-wal', '-shm']) {
    rmSync(join(dataDir, `read-models.sqlite${suffix}`), { force: true });
  }
};

test(`P4: ${PAIRS} times GET gives what POST responded, over kills at random with read models deleted or not`, async () => {
  const random = randomOf();
  const pairs = noPairs();
  using folder = temporaryFolder();
  const dataDir = folder.path;
  const env = { LOG_LEVEL: 'warn', JWT_SECRET: SECRET };
  const bearer = await token('m_test');
  const counts = { kills: 0, deleted: 0 };
  await fillWithOthers(dataDir);
  while (pairs.compared < PAIRS) {
    await using service = await startService({ dataDir, env });
    const line = lineTo(service.url, bearer);
    // At once: read models that were deleted are still being filled.
    await readAgain({ line, pairs });
    const killed = wait(random.between(100, 600)).then(() => service.kill('SIGKILL'));
    await writePairs({ line, pairs, random, until: Number.POSITIVE_INFINITY }, WRITERS);
    await killed;
    await service.exited;
    counts.kills += 1;
    if (!random.chance(0.5)) continue;
    deleteReadModels(dataDir);
    counts.deleted += 1;
  }
  const { kills, deleted } = counts;
  const again = `${pairs.comparedAgain} read again after a restart`;
  const more = `${kills} kills, read models deleted ${deleted} times, ${again}`;
  report('killed', pairs, more);
  expect(pairs.wrong).toEqual([]);
});
