/** ADR-0112: what an embedded service on SQLite takes of the machine's memory. */
import { expect, test } from '@jest/globals';
import { openWorkplace, ours } from '../../tools/bench/contestants.ts';
import { drive } from '../../tools/bench/rounds.ts';
import { startLoad, startServer } from '../../tools/bench/servers.ts';

const CREATES = 30_000;
// 390 are usual, 20 of them the thread that makes keys; 60 more where the old generation grows as the engine has it.
const MB_MAX = 420;

test(`after ${CREATES} creates the process of npm start has ${MB_MAX} MB at most`, async () => {
  const place = openWorkplace();
  const load = startLoad();
  const service = await startServer(ours, place);
  try {
    const { requests, bad, megabytes } = await drive({ place, load }, service, ['create', CREATES]);
    process.stderr.write(`memory: ${Math.round(megabytes)} MB after ${requests} creates\n`);
    expect({ requests, bad }).toEqual({ requests: CREATES, bad: 0 });
    expect(megabytes).toBeLessThan(MB_MAX);
  } finally {
    await service.stop();
    load.end();
    place.remove();
  }
});
