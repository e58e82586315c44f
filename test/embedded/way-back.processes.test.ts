/** An upgrade after which no earlier version opens a file says so before it writes, and doctor before the start. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from '@jest/globals';
import { goldenFile, SETTINGS, unpack } from '../golden/world.ts';
import { runCli } from '../support/cli.ts';
import { spawnService, untilReady } from '../support/service-processes.ts';

const LOST =
  'provider-ledger.sqlite is of schema 1, and a start gives it schema 2: no earlier version opens it afterwards, so keep a backup from before';

test('the golden folder: doctor names the file that takes another schema, and so does the start, before it does', async () => {
  const folder = unpack(goldenFile('story.tar.gz'));
  const file = join(folder.path, 'provider-ledger.sqlite');
  const schema = () => {
    using db = new DatabaseSync(file, { readOnly: true });
    return db.prepare('PRAGMA user_version').get();
  };
  try {
    expect(schema()).toEqual({ user_version: 1 });
    const before = readFileSync(file);
    const env = { ...SETTINGS, DATA_DIR: folder.path, PORT: '1' };
    const { stdout } = await runCli(['doctor', '--format', 'json'], env);
    expect(JSON.parse(stdout).dataFolder.waysBackLost).toEqual([LOST]);
    expect(readFileSync(file).equals(before)).toBe(true);

    const wrong = {
      ...SETTINGS,
      WEBHOOK_SECRET: 'not the one of this folder, of 32 bytes and more',
    };
    await using refused = await spawnService({ dataDir: folder.path, env: wrong });
    expect(await refused.exited).toMatchObject({ code: 1 });
    expect(refused.stdout()).toContain(LOST);
    expect(readFileSync(file).equals(before)).toBe(true);

    await using service = await spawnService({ dataDir: folder.path, env: SETTINGS });
    await untilReady(service);
    expect(service.stdout()).toContain(LOST);
    expect(schema()).toEqual({ user_version: 2 });
  } finally {
    folder.remove();
  }
});
