/** The promises of projector/relay/checkpoint/port.ts, asked of every driver. */
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { fileDocument } from '../../projector/relay/checkpoint/file.ts';
import type { KeyDocument } from '../../projector/relay/checkpoint/port.ts';
import { mongoKeyDocument } from '../../shared/read-models/mongodb/read-models.ts';
import { memoryDocument } from '../support/memory-feed.ts';
import { mongoServer } from '../support/mongo-server.ts';
import { temporaryFolder } from '../support/read-model-drivers.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());
const fileOf = (name: string): string => join(folder.path, `${name}.json`);

const mongo = await mongoServer();
const database = 'skip' in mongo ? undefined : mongo.database();
afterAll(() => database?.drop());

type Driver = { name: string; skip?: string | undefined; open(name: string): KeyDocument };
const memory = new Map<string, KeyDocument>();
const drivers: Driver[] = [
  {
    name: 'memory',
    open: (name) => {
      const document = memory.get(name) ?? memoryDocument();
      memory.set(name, document);
      return document;
    },
  },
  { name: 'file', open: (name) => fileDocument(fileOf(name)) },
  {
    name: 'mongodb',
    skip: 'skip' in mongo ? mongo.skip : undefined,
    open: (name) => mongoKeyDocument({ url: database?.url ?? '', name }),
  },
];

for (const { name: driver, skip, open } of drivers) {
  const suite = skip === undefined ? describe : describe.skip;
  suite(`key document: ${driver}${skip === undefined ? '' : ` (skipped: ${skip})`}`, () => {
    let name: string;
    let document: KeyDocument;
    beforeEach(() => {
      name = crypto.randomUUID();
      document = open(name);
    });
    afterEach(() => document.close());

    test('is not there at first, and is then what was saved last', async () => {
      expect(await document.load()).toBeUndefined();
      expect(await document.save('é "1"', 0)).toBe(true);
      expect(await document.save('2', 1)).toBe(true);
      expect(await document.load()).toEqual({ version: 2, text: '2' });
      const other = open(name);
      expect(await other.load()).toEqual({ version: 2, text: '2' });
      await other.close();
    });

    test('a writer that did not see the last change changes nothing', async () => {
      expect(await document.save('early', 1)).toBe(false);
      expect(await document.load()).toBeUndefined();
      await document.save('1', 0);
      await document.save('2', 1);
      for (const version of [0, 1, 3]) expect(await document.save('x', version)).toBe(false);
      expect(await document.load()).toEqual({ version: 2, text: '2' });
    });
  });
}

describe('the checkpoint file', () => {
  test('is readable by its owner alone', async () => {
    await fileDocument(fileOf('mode')).save('1', 0);
    expect(statSync(fileOf('mode')).mode & 0o777).toBe(0o600);
  });

  test('a damaged one is refused, not taken for a start from the beginning', async () => {
    writeFileSync(fileOf('damaged'), '{"version":');
    await expect(fileDocument(fileOf('damaged')).load()).rejects.toThrow(/damaged.json is damaged/);
  });

  test('a draft that a crash left beside it does not count', async () => {
    const document = fileDocument(fileOf('draft'));
    await document.save('1', 0);
    writeFileSync(`${fileOf('draft')}.new`, 'half');
    expect(await document.load()).toEqual({ version: 1, text: '1' });
    expect(await document.save('2', 1)).toBe(true);
  });
});
