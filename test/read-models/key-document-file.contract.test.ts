import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { fileDocument } from '../../shared/read-models/key-document.ts';
import { folderOfTests } from '../support/temporary-folder.ts';
import { describeKeyDocument } from './describe-key-document.ts';

const folder = folderOfTests();
const fileOf = (name: string): string => join(folder, `${name}.json`);

describeKeyDocument({ name: 'file', open: (name) => fileDocument(fileOf(name)) });

describe('the checkpoint file', () => {
  test('is readable by its owner alone', async () => {
    await fileDocument(fileOf('mode')).save('1', 0);
    expect(statSync(fileOf('mode')).mode & 0o777).toBe(0o600);
  });

  test('a damaged checkpoint file is refused, not taken for a start from the beginning', async () => {
    writeFileSync(fileOf('damaged'), '{"version":');
    await expect(fileDocument(fileOf('damaged')).load()).rejects.toThrow(/damaged.json is damaged/);
  });

  test('a draft that a crash left beside the checkpoint file does not count', async () => {
    const document = fileDocument(fileOf('draft'));
    await document.save('1', 0);
    writeFileSync(`${fileOf('draft')}.new`, 'half');
    expect(await document.load()).toEqual({ version: 1, text: '1' });
    expect(await document.save('2', 1)).toBe(true);
  });
});
