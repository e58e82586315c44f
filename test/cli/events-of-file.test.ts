/** `payments events --file` of an export of the whole log whose seals show what its chains cannot. */
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openSealer } from '../../projector/seals/open.ts';
import { runCli } from '../support/cli.ts';
import { silent } from '../support/silent-log.ts';
import {
  exportLog,
  type LogUnderTest,
  openFilledLog,
  openRows,
  rewritten,
} from '../support/tampering.ts';

let log: LogUnderTest;
let whole: string;
let forged: string;
let own: string;
let strange: string;

const events = (file: string, ...args: string[]) =>
  runCli(['events', 'pay_0', '--file', file, ...args], { DATA_DIR: log.folder, NO_COLOR: '1' });
const exported = async (name: string) => (await exportLog(log, join(log.folder, name))).out;

beforeAll(async () => {
  log = await openFilledLog();
  const fileOf = (name: string) => join(log.folder, name);
  const seals = { keyFile: undefined, eventsMax: 10_000, everyMs: 3_600_000 };
  const sealer = await openSealer({ config: { seals }, store: log.store, fileOf, log: silent });
  await sealer.stop();
  own = fileOf('sealing-key.pem');
  strange = fileOf('strange.pem');
  const { publicKey } = generateKeyPairSync('ed25519');
  writeFileSync(strange, publicKey.export({ format: 'pem', type: 'spki' }));
  whole = await exported('whole.jsonl');
  const rows = openRows(log.file);
  const toThief = (text: string) => text.replace('"merchantId":"m_0"', '"merchantId":"m_9"');
  rows.write(rewritten(rows.rows, 0, toThief));
  forged = await exported('forged.jsonl');
  rows.restore();
  rows.close();
});
afterAll(async () => {
  await log.store.close();
  await log.close();
});

describe('the events of a payment in an export of the whole log', () => {
  test('that fits its seals are shown with exit code 0, with its key too', async () => {
    for (const args of [[], ['--key', own], ['--state', '--key', own]])
      expect(await events(whole, ...args)).toMatchObject({ code: 0, stderr: '' });
  });

  test('that was forged before a seal, every hash and the manifest right, end with 3', async () => {
    for (const args of [[], ['--state'], ['--key', own]]) {
      const { code, stdout, stderr } = await events(forged, ...args);
      expect([code, stderr]).toEqual([
        3,
        expect.stringMatching(
          /is not as it was exported, so it is not proven .* position 37: the log is not the one that was sealed at position 36; next: payments verify --file/,
        ),
      ]);
      expect(stdout).not.toBe('');
    }
  });

  test('that leave out a link between two lines end with 3 as well', async () => {
    const rows = openRows(log.file);
    rows.write(rows.rows.map((row, n) => (n === 8 ? { ...row, log_hash: '0'.repeat(64) } : row)));
    const file = await exported('link.jsonl');
    rows.restore();
    rows.close();
    expect(await events(file)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('position 9: it does not follow in the log'),
    });
  });

  test('whose seals another key made end with 3, and a key without a seal proves nothing', async () => {
    expect(await events(whole, '--key', strange)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('it was sealed with another key'),
    });
    const bare = await openFilledLog();
    const { out } = await exportLog(bare);
    expect(await events(out, '--key', own)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('has no seal and no signed manifest'),
    });
    expect((await events(out)).code).toBe(0);
    await bare.close();
    const part = (await exportLog(log, join(log.folder, 'part.jsonl'), '12')).out;
    expect(await events(part, '--key', own)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('has no seal and no signed manifest'),
    });
    expect(await runCli(['events', 'pay_0', '--key', own])).toMatchObject({ code: 2 });
  });
});
