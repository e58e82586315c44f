/** What was written after the last seal: kept beside the key each second, so that it cannot be written anew. */
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { runCli } from '../support/cli.ts';
import { shareOf, timesOf } from '../support/long-run-share.ts';
import { expectOneLine, rejection } from '../support/refused-start.ts';
import { APPROVED, PAYMENTS, payment, startInProcess } from '../support/service-in-process.ts';
import { type Service, startService } from '../support/service-processes.ts';
import { openRows, type Row, rewritten } from '../support/tampering.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/until.ts';

const sale = (service: Service) =>
  service.post(PAYMENTS, payment({ number: APPROVED, captureNow: true }));

let folder: ReturnType<typeof temporaryFolder>;
let env: Record<string, string>;
let dataDir: string;
beforeEach(() => {
  folder = temporaryFolder();
  dataDir = join(folder.path, 'data');
  mkdirSync(join(folder.path, 'keys'));
  env = { SEALING_KEY_FILE: join(folder.path, 'keys/key.pem'), DATA_DIR: dataDir };
});
afterEach(() => folder.remove());

const headFile = () => `${env.SEALING_KEY_FILE}.head`;
const positionOf = async (service: Service): Promise<string> =>
  JSON.parse((await service.get('/health/ready')).text).engines.eventStore.position;

const keptPosition = (): string | undefined =>
  existsSync(headFile()) ? JSON.parse(readFileSync(headFile(), 'utf8')).last?.position : undefined;
/** Waits until the head beside the key is the end of the log. */
const untilKept = (service: Service): Promise<void> =>
  until('the head is kept', async () => keptPosition() === (await positionOf(service)));

const endedByKill = async (service: Service): Promise<void> => {
  service.kill('SIGKILL');
  await service.exited;
};

/** Killed among its writes: each start after it accepts the log with the head that was kept. */
const killedAmongSales = async (): Promise<void> => {
  await using service = await startService({ dataDir, env });
  const writers = Array.from({ length: 8 }, async () => {
    while (service.running()) await sale(service).catch(() => undefined);
  });
  await until('a head is kept', () => keptPosition() !== undefined);
  await endedByKill(service);
  await Promise.all(writers);
};

/** Makes a sale, and kills the service before it is sealed. */
const killedAfterSale = async (): Promise<void> => {
  await using service = await startService({ dataDir, env });
  expect((await sale(service)).status).toBe(200);
  await untilKept(service);
  await endedByKill(service);
};

/** Changes by a thief who has the folder and not the key. */
const change = (how: (rows: Row[]) => Row[]): void => {
  const log = openRows(join(dataDir, 'events.sqlite'));
  log.write(how(log.rows));
  log.close();
  for (const suffix of ['', '-wal', '-shm'])
    rmSync(join(dataDir, `read-models.sqlite${suffix}`), { force: true });
};
const toThief = (text: string) => text.replace('"merchantId":"m_demo"', '"merchantId":"m_thief"');
const ofThief = (rows: Row[]) =>
  rewritten(
    rows,
    rows.findIndex(({ text }) => toThief(text) !== text),
    toThief,
  );

const CHANGES = [
  { what: 'whose first payment was given to another merchant', how: ofThief },
  { what: 'whose last events were cut off', how: (rows: Row[]) => rows.slice(0, -2) },
];

describe('a log after its last seal', () => {
  test.each(shareOf(CHANGES, 1))(
    'starts again after each kill -9, and $what, every hash right and no read models left, is refused and named',
    async ({ how }) => {
      for (let n = 0; n < timesOf(3, 1); n += 1) await killedAmongSales();
      await killedAfterSale();
      expect((await runCli(['verify', '--data', dataDir], env)).code).toBe(0);
      change(how);
      const REASON =
        /the event log is not the one that was kept at position \d+, after its last seal/;
      const lines = await rejection({ dataDir, env });
      expectOneLine(lines, 'DATA_DIR', `remove ${headFile()}`);
      expect(lines[0]).toMatch(REASON);
      const verified = await runCli(['verify', '--data', dataDir], env);
      expect(verified).toMatchObject({
        code: 3,
        stdout: expect.stringMatching(/^BROKEN {2}/),
        stderr: expect.stringMatching(REASON),
      });
      rmSync(headFile());
      await using again = await startInProcess({ dataDir, env });
      expect((await again.get('/health/ready')).status).toBe(200);
      await again[Symbol.asyncDispose]();
      expect(keptPosition()).toBeUndefined();
    },
  );
});
