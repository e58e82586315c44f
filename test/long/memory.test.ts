/** ADR-0112, ADR-0112: what an embedded service on SQLite takes of the machine's memory. */
import { expect, test } from '@jest/globals';
import { startServer } from '../../scripts/bench/server.ts';
import { load } from '../../scripts/bench/turns.ts';
import { openWorkplace, postOrder, serviceOrder } from '../../scripts/bench/workplace.ts';

const CREATES = 30_000;
const SECONDS_MAX = 900;
// 340 are usual, and above 400 where the old generation grows as the engine has it.
const MB_MAX = 380;

test(`after ${CREATES} creates the process of npm start has ${MB_MAX} MB at most`, async () => {
  const workplace = openWorkplace(SECONDS_MAX);
  const service = await startServer(serviceOrder(workplace));
  try {
    const order = { ...postOrder(workplace, service.url), requestsMax: CREATES };
    const { requests, bad } = await load(order);
    const { rssBytes } = await service.usage();
    process.stderr.write(`memory: ${Math.round(rssBytes / 1e6)} MB after ${requests} creates\n`);
    expect({ requests, bad }).toEqual({ requests: CREATES, bad: 0 });
    expect(rssBytes / 1e6).toBeLessThan(MB_MAX);
  } finally {
    await service.stop();
    workplace.remove();
  }
}, 900_000);
